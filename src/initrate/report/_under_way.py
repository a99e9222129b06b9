"""A bucket that is under way: how far its checkpoint says it is, read without a tensor of it."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initrate.study import Store

_MOST_HEADER = 50_000_000
"""Bytes of a checkpoint's header that are read: it holds the curves so far of a bucket's runs."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A bucket that was begun and is not done."""

    n_cells: int
    """How many runs it trains together; 0 where no checkpoint says which bucket it is."""
    step: int | None = None
    steps: int | None = None
    """The step its checkpoint was written at, and how many there are; None where none says."""

    @property
    def done(self) -> float:
        """How many runs its steps are worth: 9 runs half trained are 4.5."""
        return self.n_cells * self.step / self.steps if self.step and self.steps else 0.0


def under_way(store: Store) -> UnderWay | None:
    """Return the bucket of a study that is begun and not done, or None.

    It is known by its checkpoint, which an interrupted run leaves and a running one writes about
    every minute. What cannot be read of it is left out: no result depends on it.
    """
    from initrate.study import grid

    done = store.parts()
    for bucket in store.plan.buckets:
        checkpoint = store.checkpoint(bucket.id)
        if bucket.id in done or not checkpoint.is_file():
            continue
        steps = next(p.cell.training.steps for p in grid(store.config) if p.id in bucket.cells)
        step = _step(checkpoint)
        known = step is not None and 0 <= step <= steps
        return UnderWay(len(bucket.cells), step if known else None, steps if known else None)
    return UnderWay(0) if store.status == "running" else None


def _step(checkpoint: Path) -> int | None:
    """Return the step in the header of a checkpoint: a length, and JSON of that length."""
    try:
        with checkpoint.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > _MOST_HEADER:
                return None
            return int(json.loads(file.read(length))["__metadata__"]["step"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError, struct.error):
        return None

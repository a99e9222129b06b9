"""The search itself: batch after batch, until every row is resolved or has no more to tell.

Where the labels come from is no matter of it: they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from initrate.boundary._choice import Batch, choose_batch
from initrate.boundary._crossings import Aim, Reading, read_crossings
from initrate.boundary._curves import Curves, draw_curves

Labels = NDArray[np.int8]
HIT, MISS, FAILED, UNTRIED = 1, 0, -1, -2
"""Has the label, has another one, has none (its training failed), was not asked for."""

Ask = Callable[[Batch], Labels]
"""What tells the labels of a batch: an array of the shape (values, seeds)."""


class Shape(NamedTuple):
    """The candidates: how many rows, values in each, seeds at each value."""

    rows: int
    values: int
    seeds: int


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: a reading a row, and the labels that it rests on."""

    readings: tuple[Reading, ...]
    labels: Labels
    """Shape (rows, values, seeds)."""


def find(
    shape: Shape,
    ask: Ask,
    *,
    aim: Aim | None = None,
    width: int = 8,
    begun: Iterable[Batch] = (),
    on_reading: Callable[[int, Reading, Labels], None] | None = None,
) -> Found:
    """Return the crossings of every row; each next batch follows from the labels so far alone.

    Batches are `width` cells at most. Those of `begun` are asked for before any is chosen.

    >>> def ask(batch):
    ...     high = np.array(batch.values) >= 7
    ...     return np.repeat(high[:, None], len(batch.seeds), axis=1).astype(np.int8)
    >>> found = find(Shape(rows=1, values=13, seeds=5), ask)
    >>> [(6 < crossing.estimate < 7) for crossing in found.readings[0].crossings]
    [True]
    >>> int((found.labels != UNTRIED).sum()) <= 65 / 3
    True
    """
    aim = aim or Aim()
    labels = np.full(shape, UNTRIED, dtype=np.int8)
    for batch in begun:
        _take(labels, batch, ask(batch))
    alone: dict[int, Curves] = {}
    readings: dict[int, Reading] = {}
    chosen: dict[int, Batch | None] = {}

    def look(row: int) -> None:
        """Read a row anew, and choose what is asked of it next, if anything."""
        beside = [k for k in (row - 1, row + 1) if 0 <= k < shape.rows]
        for near in beside:
            # By its labels alone: what a row says is not to come back to it from its neighbours.
            if near not in alone:
                alone[near] = _draw(labels[near])
        curves = _draw(labels[row], [alone[near] for near in beside])
        readings[row] = read_crossings(curves, aim)
        chosen[row] = None
        if not readings[row].resolved:
            untried = labels[row] == UNTRIED
            chosen[row] = choose_batch(curves, untried, row=row, width=width)
        if on_reading:
            on_reading(row, readings[row], labels)

    # One row after the other: what is known of one tells where to look in the next, and what is
    # found there may say something of the one before.
    row: int | None = 0
    while row is not None:
        if row not in readings:
            look(row)
        batch = chosen[row]
        if batch is None:
            row = next((k for k in range(shape.rows) if k not in readings), None)
            continue
        _take(labels, batch, ask(batch))
        alone.pop(row, None)
        for near in (row - 1, row, row + 1):
            readings.pop(near, None)
    return Found(tuple(readings[row] for row in range(shape.rows)), labels)


def _draw(labels: Labels, beside: Sequence[Curves] = ()) -> Curves:
    """Curves of a row; failed cells say nothing."""
    hits, tries = (labels == HIT).sum(axis=1), (labels >= MISS).sum(axis=1)
    return draw_curves(hits, tries, beside=beside)


def _take(labels: Labels, batch: Batch, told: Labels) -> None:
    labels[batch.row, np.array(batch.values)[:, None], np.array(batch.seeds)[None, :]] = told

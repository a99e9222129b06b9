"""Which keys may stand where: the split by value and position."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from initrate.tasks._task import Integers

if TYPE_CHECKING:
    from initrate.tasks._anchor import AnchorTask


@dataclass(frozen=True, slots=True)
class KeyCells:
    """The (key, position) cells of one type: training or test."""

    keys: Integers
    """[n_cells]"""
    positions: Integers
    """[n_cells], rising; keys rise within a position"""
    counts: Integers
    """[n_positions], how many keys a position may hold"""
    starts: Integers
    """[n_positions], the first cell of a position"""

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return len(self.keys)


@lru_cache(maxsize=64)
def key_cells(task: AnchorTask) -> tuple[KeyCells, KeyCells]:
    """Return the training-type and the test-type cells.

    Position p holds x in the test cells where x mod modulus = p, else in the training cells
    (arXiv 2405.05409, Appendix C).

    >>> from initrate.tasks import variant
    >>> [cells.n_cells for cells in key_cells(variant("34-wrong"))]
    [498, 62]
    """
    keys = np.arange(task.key_low, task.key_high + 1, dtype=np.int64)
    positions = np.arange(task.n_positions, dtype=np.int64)
    is_test = keys[None, :] % task.modulus == positions[:, None]
    return _cells(~is_test, keys), _cells(is_test, keys)


def _cells(chosen: np.ndarray, keys: Integers) -> KeyCells:
    position, index = np.nonzero(chosen)
    counts = chosen.sum(axis=1).astype(np.int64)
    cells = KeyCells(
        keys=keys[index],
        positions=position.astype(np.int64),
        counts=counts,
        starts=np.cumsum(counts) - counts,
    )
    for array in (cells.keys, cells.positions, cells.counts, cells.starts):
        array.flags.writeable = False
    return cells

"""The values a plan gives: any window of a tensor, in whatever order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from initrate.rule._plan import PlanRow
from initrate.rule._random import BLOCK, unit_normal, unit_uniform


def draw_window(row: PlanRow, seed: int, start: int, size: int) -> NDArray[np.float32]:
    """Return `size` values of a row from place `start` on, counted in the order of its shape.

    A value depends on (seed, name, place) alone. It is rounded to float32 once. The row of a
    padding token is zero.

    >>> from initrate.rule import Rule, WeightRecord, plan_records
    >>> record = WeightRecord("fc.weight", (8, 64), ("mlp_in",), d_in=64)
    >>> row = plan_records([record], Rule(gamma=0.5)).rows[0]
    >>> whole = draw_window(row, 0, 0, 512)
    >>> bool((draw_window(row, 0, 500, 12) == whole[500:]).all())
    True
    """
    if row.factor is None:
        assert row.action == "zero", row
        return np.zeros(size, dtype=np.float32)
    unit = unit_uniform if row.uniform else unit_normal
    values = unit(seed, row.name, size, start=start)
    # The product is taken in float64 and rounded once, a few values at a time.
    np.multiply(values, row.factor, out=values, dtype=np.float64, casting="same_kind")
    padding = row.record.padding
    if padding is not None:
        width = row.size // row.shape[0]
        values[max(0, padding * width - start) : max(0, (padding + 1) * width - start)] = 0.0
    return values


def windows(row: PlanRow, most: int = BLOCK) -> Iterator[tuple[int, int]]:
    """Return the windows (start, size) of a row, none above `most` values.

    >>> from initrate.rule import Rule, WeightRecord, plan_records
    >>> record = WeightRecord("fc.weight", (3, 64), ("mlp_in",), d_in=64)
    >>> list(windows(plan_records([record], Rule()).rows[0], 100))
    [(0, 100), (100, 92)]
    """
    return ((start, min(most, row.size - start)) for start in range(0, row.size, most))

"""Values in NumPy arrays: drawn into a buffer block by block, and measured part by part."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from initrate.errors import InputError
from initrate.measure import Moments, moments
from initrate.rule import PlanRow, Slice, WeightRecord, draw_window, windows

Array = NDArray[Any]
SHORT = ("float16", "bfloat16", "float32", "float64")
"""The types that values are drawn in."""


def part_of(array: Array, where: Slice | None) -> Array:
    """Return the view of a part of a contiguous array, in the shape that the part has by itself.

    >>> part_of(np.arange(12).reshape(2, 6), Slice(axis=1, start=2, length=2)).tolist()
    [[[2, 3]], [[8, 9]]]
    """
    if where is None:
        return array
    split = array.reshape(where.split(array.shape))
    inside = slice(where.start, where.start + where.length)
    return split[(slice(None),) * (where.axis + 1) + (inside,)]


def new_values(old: Array, rows: Sequence[PlanRow], seed: int, *, rescale: bool = False) -> Array:
    """Return the values that the rows of one tensor give it, in the type of the old ones.

    Parts that are kept hold the old values. Values are rounded to the type of `old` once.
    """
    acting = [row for row in rows if row.action in ("draw", "zero")]
    whole = len(acting) == 1 and acting[0].record.where is None and not rescale
    buffer = np.empty(old.shape, old.dtype) if whole else np.array(old, order="C")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for row in acting:
            view = part_of(buffer, row.record.where)
            if rescale and row.action == "draw":
                view[...] = _rescaled(view, row)
                continue
            # Of a part, `flat` counts in the order of its shape, as the draw does.
            flat = view.reshape(-1) if row.record.where is None else view.flat

            def fill(window: tuple[int, int], row: PlanRow = row, flat: Any = flat) -> None:
                start, size = window
                flat[start : start + size] = draw_window(row, seed, start, size).astype(old.dtype)

            list(pool.map(fill, windows(row)))
    return buffer


def _rescaled(view: Array, row: PlanRow) -> Array:
    """Return the values multiplied to the std of the rule."""
    found = moments(view)
    std = found.std
    if not found.finite:
        raise InputError(f"{row.name!r} has values that are not finite: draw it (mode='draw')")
    if std == 0:
        raise InputError(f"{row.name!r} is zero: it cannot be rescaled; draw it")
    assert row.std is not None
    return (view.astype(np.float64) * (row.std / std)).astype(view.dtype)


def measure(array: Array, records: Iterable[WeightRecord]) -> dict[str, Moments]:
    """Return the moments of every part of one tensor, by its name in the plan."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    return {record.key: moments(part_of(array, record.where)) for record in records}


def check_force(force: object) -> None:
    """Raise the error for a `force` that is neither True nor False."""
    if not isinstance(force, bool):
        raise InputError(f"force is {force!r}: expected True or False")


def refuse_trained(name: str, array: Array) -> None:
    """Raise the error for a norm whose weight or bias is not constant."""
    if array.size and bool((array != array.reshape(-1)[0]).any()):
        raise InputError(
            f"{name!r} is not constant: the model looks trained, and apply would overwrite what "
            "it has learned; give force=True if that is meant"
        )

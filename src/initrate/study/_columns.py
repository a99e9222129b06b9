"""What the columns of a stored table must be, for tables that others may have changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from initrate.study._range import Value
from initrate.study._tables import COLUMNS, SWITCHES, TEXTS, TIMING, WHOLE, polars

if TYPE_CHECKING:
    from polars import DataFrame

_NEVER_NULL: Mapping[str, tuple[str, ...]] = {
    "cells": (
        *("cell", "bucket", "lane", "variant", "rule", "gamma_by_role", "depth", "d_model", "lr"),
        *("weight_decay", "steps", "batch", "seed_init", "seed_pool", "seed_order"),
        *("seed_evaluation", "diverged"),
    ),
    "curves": ("cell", "step"),
    "counts": ("cell", "split", "pair", "by", "n", "correct"),
    "shifts": ("cell", "split", "pair", "shift", "n"),
    "tensors": ("cell", "tensor", "role"),
    "timing": ("bucket", "n_cells", "session", "seconds"),
}
_COUNTED = (
    *(("n_unseen", part) for part in ("unseen_composed", "unseen_mirrored", "unseen_top_shift_n")),
    ("probe_n", "probe_composed"),
)
"""Counts of a cell, and what they are parts of."""


def wrong_in(table: DataFrame, name: str, cells: Sequence[str] | None = None) -> str:
    """Return what is wrong with a table by its name, in words; empty where nothing is.

    `cells` are those of its part: the table is of these and no others.
    """
    columns = TIMING if name == "timing" else COLUMNS[name]
    missing = [column for column in columns if column not in table.columns]
    if missing:
        return f"lacks the columns {missing}"
    for column in table.columns:
        found, kinds = table.schema[column], _kinds(column)
        if found not in kinds:
            return f"has {found} in its column {column!r}, expected {' or '.join(map(str, kinds))}"
    for column in _NEVER_NULL[name]:
        if table[column].null_count():
            return f"has nothing in a row of its column {column!r}"
    if name == "cells" and cells is not None and table["cell"].to_list() != list(cells):
        return "has rows of other cells than its manifest"
    if cells is not None and not set(table["cell"].to_list()) <= set(cells):
        return "has rows of other cells than its manifest"
    return _wrong_counts(table) if name == "cells" else ""


def wrong_axis(table: DataFrame, axes: Mapping[str, Sequence[Value]]) -> str:
    """Return what is wrong with the columns of axes of a table of cells; empty if nothing is."""
    for name, known in axes.items():
        if name not in table.columns:
            return f"lacks the column {name!r} of an axis"
        strange = [found for found in table[name].to_list() if found not in known]
        if strange:
            return f"has {strange[0]!r} in its column {name!r}, expected a value of the axis"
    return ""


def _wrong_counts(table: DataFrame) -> str:
    for whole, part in _COUNTED:
        of = table[whole].fill_null(0)
        if ((table[part].fill_null(0) > of) | (table[part].fill_null(0) < 0) | (of < 0)).any():
            return f"has more in its column {part!r} than in {whole!r}, or less than none"
    return ""


def _kinds(column: str) -> tuple[object, ...]:
    """The types of a column by its name; one that is not known holds numbers, words or switches."""
    pl = polars()
    if column in TEXTS:
        return (pl.String,)
    if column in WHOLE:
        return (pl.Int64,)
    if column in SWITCHES:
        return (pl.Boolean,)
    if any(column in columns for columns in (*COLUMNS.values(), TIMING)):
        return (pl.Float64, pl.Int64)
    return (pl.Float64, pl.Int64, pl.Boolean, pl.String)

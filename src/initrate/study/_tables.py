"""The tables of a study: their columns, and the rows of one bucket from what training returned."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, cast

from initrate.errors import InputError
from initrate.study._cell import one_rate, rates_that_differ
from initrate.study._config import GridPoint
from initrate.training import LaneResult

if TYPE_CHECKING:
    from polars import DataFrame

Row = Mapping[str, object]

TEXTS = frozenset(
    {
        *("cell", "bucket", "variant", "rule", "gamma_by_role", "split", "pair", "by", "tensor"),
        *("role", "fit", "label", "host", "began", "ended"),
    }
)
WHOLE = frozenset(
    {
        *("lane", "depth", "d_model", "steps", "batch", "step", "seed", "seed_init", "seed_pool"),
        *("seed_order", "seed_evaluation", "n_unseen", "unseen_composed", "unseen_mirrored"),
        *("unseen_top_shift", "unseen_top_shift_n", "probe_n", "probe_composed", "diverged_step"),
        *("best_step", "best_symmetric_step", "index", "n", "correct", "composed", "mirrored"),
        *("shift", "d_in", "label_shift", "n_cells", "session", "threads"),
    }
)
SWITCHES = frozenset({"diverged", "at_floor"})

IDENTITY = (
    *("cell", "bucket", "lane", "variant", "rule", "gamma", "gamma_by_role", "depth", "d_model"),
    *("lr", "weight_decay", "steps", "batch", "seed", "seed_init", "seed_pool", "seed_order"),
    "seed_evaluation",
)
SCORES = (
    *("training_accuracy", "seen_accuracy", "seen_training_key_accuracy", "inferential_accuracy"),
    *("inferential_accuracy_last_position", "inferential_accuracy_test_keys"),
    *("symmetric_accuracy", "probe_accuracy", "commutes", "n_unseen", "unseen_composed"),
    *("unseen_mirrored", "unseen_top_shift", "unseen_top_shift_n", "probe_n", "probe_composed"),
)
FINAL = (
    *("training_accuracy", "seen_accuracy", "inferential_accuracy", "symmetric_accuracy"),
    *("probe_accuracy", "loss"),
)
"""What is averaged over the last tenth of the evaluations, in columns called `final_...`."""
CELLS = (
    *IDENTITY,
    *SCORES,
    *(f"final_{name}" for name in FINAL),
    *("best_inferential_accuracy", "best_step", "best_symmetric_accuracy", "best_symmetric_step"),
    *("diverged", "diverged_step", "sum_lr", "sum_lr_weight_decay", "final_training_loss"),
    *("block_to_skip", "floor_no_input"),
)
CURVES = ("cell", "step", "loss", "training_loss", "lr", "gradient_norm", *SCORES[:9])
COUNTS = ("cell", "split", "pair", "by", "index", "n", "correct", "composed", "mirrored")
SHIFTS = ("cell", "split", "pair", "shift", "n")
TENSORS = (
    *("cell", "tensor", "role", "d_in", "target_std", "init_std", "final_std", "sigma_sqrt_d"),
    *("init_norm", "final_norm", "update_norm"),
)
TIMING = ("bucket", "n_cells", "session", "host", "began", "ended", "seconds", "threads")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "cells": CELLS,
    "curves": CURVES,
    "counts": COUNTS,
    "shifts": SHIFTS,
    "tensors": TENSORS,
}
"""The tables of a part and the columns that each has at least."""


def polars() -> ModuleType:
    """Return the module polars, or raise the InputError that says how to install it."""
    try:
        import polars as module
    except ImportError as error:
        raise InputError(
            "the laboratory needs polars: install it with pip install 'initrate[lab]'"
        ) from error
    return module


def frame(rows: Iterable[Row], columns: Sequence[str]) -> DataFrame:
    """Return a table with these columns, and after them any others that the rows have.

    Types follow from the names alone, so that tables of different buckets always fit together;
    a column that is not known holds the type of its entries.
    """
    pl = polars()
    plain = [{name: _plain(entry) for name, entry in row.items()} for row in rows]
    further = dict.fromkeys(name for row in plain for name in row if name not in columns)
    names = [*columns, *further]
    series = [
        pl.Series(name, [row.get(name) for row in plain], dtype=_dtype(name, plain), strict=False)
        for name in names
    ]
    return pl.DataFrame(series)


def stacked(tables: Sequence[DataFrame], columns: Sequence[str]) -> DataFrame:
    """Return the tables as one; columns that some lack are null there."""
    if not tables:
        return frame([], columns)
    return polars().concat(tables, how="diagonal_relaxed")


def parquet(table: DataFrame) -> bytes:
    """Return a table as the bytes of a Parquet file; equal tables give equal bytes."""
    data = io.BytesIO()
    table.write_parquet(data, compression="zstd")
    return data.getvalue()


def bucket_tables(
    bucket: str,
    points: Sequence[GridPoint],
    lanes: Sequence[LaneResult],
    floors: Sequence[float | None],
) -> dict[str, DataFrame]:
    """Return the tables of a trained bucket, by name; `floors` are the entropies of the targets."""
    rows: dict[str, list[Row]] = {name: [] for name in COLUMNS}
    for lane, (point, result, floor) in enumerate(zip(points, lanes, floors, strict=True)):
        cell = {"cell": point.id}
        place = {"bucket": bucket, "lane": lane, "floor_no_input": floor}
        rows["cells"].append({**cell_columns(point), **place, **outcome_columns(result)})
        rows["curves"] += [{**cell, **row} for row in result.curve]
        rows["counts"] += [{**cell, **row} for row in result.score.counts]
        rows["shifts"] += [{**cell, **row} for row in result.score.shifts]
        rows["tensors"] += [{**cell, **row} for row in result.tensors]
    return {name: frame(rows[name], columns) for name, columns in COLUMNS.items()}


def cell_columns(point: GridPoint) -> dict[str, object]:
    """Return the columns that say what a cell is: they are known before it is trained."""
    cell = point.cell
    seeds = cell.seeds
    return {
        "cell": point.id,
        "variant": cell.task.variant,
        "rule": cell.rule.name,
        "gamma": one_rate(cell.rule),
        "gamma_by_role": json.dumps(rates_that_differ(cell.rule)),
        "depth": cell.model.n_layers,
        "d_model": cell.model.d_model,
        "lr": cell.training.lr,
        "weight_decay": cell.training.weight_decay,
        "steps": cell.training.steps,
        "batch": cell.training.batch,
        "seed": point.seed,
        "seed_init": seeds.init,
        "seed_pool": seeds.pool,
        "seed_order": seeds.order,
        "seed_evaluation": seeds.evaluation,
        **point.axes,
    }


def outcome_columns(result: LaneResult) -> dict[str, object]:
    """Return the columns that say what came out: final, best and step of best are kept apart."""
    return {
        **result.score.scalars,
        **_finals(result.curve),
        **_best(result.curve, "inferential_accuracy", "best_inferential_accuracy", "best_step"),
        **_best(
            result.curve, "symmetric_accuracy", "best_symmetric_accuracy", "best_symmetric_step"
        ),
        "diverged": result.diverged,
        "diverged_step": result.diverged_step,
        **result.scalars,
    }


def _finals(curve: Sequence[Row]) -> dict[str, float | None]:
    last = curve[-math.ceil(len(curve) / 10) :] if curve else []
    finals: dict[str, float | None] = {}
    for name in FINAL:
        found = [number for row in last if (number := _finite(row.get(name))) is not None]
        # A mean over a part of the last tenth would hide that the others are not finite.
        whole = bool(found) and len(found) == len(last)
        finals[f"final_{name}"] = math.fsum(found) / len(found) if whole else None
    return finals


def _best(curve: Sequence[Row], name: str, best: str, step: str) -> dict[str, object]:
    found = [
        (number, row["step"]) for row in curve if (number := _finite(row.get(name))) is not None
    ]
    if not found:
        return {best: None, step: None}
    top, first = max(found, key=lambda pair: pair[0])
    return {best: top, step: first}


def _finite(entry: object) -> float | None:
    number = _plain(entry)
    if isinstance(number, int | float) and math.isfinite(number):
        return float(number)
    return None


def _plain(entry: object) -> object:
    """NumPy and torch scalars become plain ones."""
    item = getattr(entry, "item", None)
    return cast("object", item()) if callable(item) else entry


def _dtype(name: str, rows: Sequence[Row]) -> object:
    pl = polars()
    if name in TEXTS:
        return pl.String
    if name in WHOLE:
        return pl.Int64
    if name in SWITCHES:
        return pl.Boolean
    kinds = {type(entry) for row in rows if (entry := row.get(name)) is not None}
    by_kind = {str: pl.String, bool: pl.Boolean, int: pl.Int64}
    return by_kind.get(kinds.pop(), pl.Float64) if len(kinds) == 1 else pl.Float64

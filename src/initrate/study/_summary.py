"""What a study says: labels by the stored thresholds, and a row a point of the grid."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from initrate.statistics import median_coverage, median_interval
from initrate.study._config import StudyConfig
from initrate.study._label import Thresholds, at_floor, label
from initrate.study._tables import frame

if TYPE_CHECKING:
    from polars import DataFrame

Row = Mapping[str, object]

_SEEDS = ("seed_init", "seed_pool", "seed_order", "seed_evaluation")
_ANSWERS = ("inferential_accuracy", "symmetric_accuracy")


def labelled(cells: DataFrame, thresholds: Thresholds) -> DataFrame:
    """Return the cells with what was learned: `fit`, `label`, `label_shift` and `at_floor`.

    `label_shift` is the shift of the key that a cell labelled "other" answers with.
    """
    rows: list[Row] = []
    for cell in cells.iter_rows(named=True):
        verdict = label(cell, thresholds)
        rows.append(
            {
                "fit": verdict.fit,
                "label": verdict.label,
                "label_shift": cell["unseen_top_shift"] if verdict.label == "other" else None,
                "at_floor": at_floor(
                    cell["final_training_loss"], cell["floor_no_input"], thresholds
                ),
            }
        )
    return cells.hstack(frame(rows, ("fit", "label", "label_shift", "at_floor")))


def summary_rows(cells: DataFrame, config: StudyConfig) -> list[dict[str, object]]:
    """Return a row a point of the grid, in the grid's order, over all its trained seeds.

    `median`, `low` and `high` are of the inferential accuracy; those of other accuracies carry
    its name, as in `median_symmetric`. `coverage` is the probability that low to high holds the
    true median: 0.75 with 3 seeds; with one seed low, high and coverage are None. Of crossed seeds
    coverage is None: runs that share a seed are not independent.

    With the protocol best-lr they are of the run whose learning rate has the lowest training loss,
    and the maxima over learning rates stand beside them, called so; a seed counts once all its
    learning rates are trained.
    """
    by_point: dict[tuple[object, ...], list[Row]] = {}
    for cell in cells.iter_rows(named=True):
        by_point.setdefault(tuple(cell[name] for name in config.axes), []).append(cell)
    points = sorted(by_point, key=lambda point: _place(point, config.axes))
    rows: list[dict[str, object]] = []
    for point in points:
        axes = dict(zip(config.axes, point, strict=True))
        runs, maxima = by_point[point], {}
        if config.protocol == "best-lr":
            by_seed = _whole_seeds(runs, len(config.lrs))
            if not by_seed:
                continue
            runs = [_lowest_loss(of_seed) for of_seed in by_seed]
            maxima = _maxima(by_seed, runs)
        row = {**axes, **_over_seeds(runs), **maxima}
        if config.seed_axes:
            row["coverage"] = None
        rows.append(row)
    return rows


def _over_seeds(runs: Sequence[Row]) -> dict[str, object]:
    labels = Counter(str(run["label"]) for run in runs)
    row: dict[str, object] = {
        "n_seeds": len(runs),
        "labels": {name: labels[name] for name in sorted(labels)},
    }
    for name, suffix in (
        ("inferential_accuracy", ""),
        ("symmetric_accuracy", "_symmetric"),
        ("seen_accuracy", "_seen"),
        ("training_accuracy", "_training"),
        ("probe_accuracy", "_probe"),
    ):
        numbers = _numbers(runs, name)
        interval = _interval(numbers)
        for statistic, number in zip(("median", "low", "high"), interval, strict=True):
            row[statistic + suffix] = number
        if not suffix:
            row["coverage"] = median_coverage(len(numbers)) if len(numbers) > 1 else None
    return row


def _interval(numbers: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """One seed has a value and no interval."""
    if len(numbers) < 2:
        return (numbers[0] if numbers else None, None, None)
    median, low, high = median_interval(numbers)
    return median, low, high


def _maxima(by_seed: Sequence[Sequence[Row]], chosen: Sequence[Row]) -> dict[str, object]:
    """Means over seeds of what is largest over learning rates, beside the same run's other answer.

    The two maxima may come from different runs; each is optimistic.
    """
    inferential, symmetric = _ANSWERS
    row: dict[str, object] = {"lr_of_lowest_training_loss": [run["lr"] for run in chosen]}
    for name, other in ((inferential, symmetric), (symmetric, inferential)):
        best = [_largest(runs, name) for runs in by_seed]
        found = [run for run in best if run is not None]
        row[f"max_over_lr_{name}"] = _mean(_numbers(found, name))
        row[f"{other}_at_max_over_lr_{name}"] = _mean(_numbers(found, other))
    return row


def _whole_seeds(runs: Sequence[Row], n_lrs: int) -> list[list[Row]]:
    by_seed: dict[tuple[object, ...], list[Row]] = {}
    for run in runs:
        by_seed.setdefault(tuple(run[name] for name in _SEEDS), []).append(run)
    return [of_seed for of_seed in by_seed.values() if len(of_seed) == n_lrs]


def _lowest_loss(runs: Sequence[Row]) -> Row:
    """A run that diverged has no loss to choose it by."""
    losses = {k: loss[0] for k, run in enumerate(runs) if (loss := _loss(run))}
    return runs[min(losses, key=losses.__getitem__)] if losses else runs[0]


def _loss(run: Row) -> list[float]:
    return [] if run["diverged"] else _numbers([run], "final_training_loss")


def _largest(runs: Sequence[Row], name: str) -> Row | None:
    known = [run for run in runs if run[name] is not None]
    return max(known, key=lambda run: cast("float", run[name])) if known else None


def _numbers(runs: Sequence[Row], name: str) -> list[float]:
    return [cast("float", run[name]) for run in runs if run[name] is not None]


def _mean(numbers: Sequence[float]) -> float | None:
    return statistics.fmean(numbers) if numbers else None


def _place(point: tuple[object, ...], axes: Mapping[str, Sequence[object]]) -> tuple[int, ...]:
    return tuple(v.index(entry) for entry, v in zip(point, axes.values(), strict=True))

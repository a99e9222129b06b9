"""Summaries: over seeds, and over learning rates where the protocol says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from initrate.study import Store, StudyConfig, Thresholds, grid
from initrate.study._summary import labelled, summary_rows
from initrate.study._tables import CELLS, cell_columns, frame
from initrate.tasks import variant


def _rows(config: StudyConfig, outcomes: Mapping[Any, Mapping[str, object]]) -> pl.DataFrame:
    """A row a cell; `outcomes` by the values of its axes and its seed."""
    fitted = {"training_accuracy": 1.0, "seen_accuracy": 1.0, "n_unseen": 1000, "diverged": False}
    rows = []
    for point in grid(config):
        outcome = outcomes.get((*point.axes.values(), point.seed))
        if outcome is not None:
            composed = round(1000 * float(str(outcome["inferential_accuracy"] or 0)))
            counts = {"unseen_composed": composed, "unseen_mirrored": 0}
            rows.append({**cell_columns(point), **fitted, **counts, **outcome})
    return labelled(frame(rows, CELLS), Thresholds())


@pytest.fixture
def by_gamma() -> StudyConfig:
    """Return two gammas and three seeds."""
    return StudyConfig(
        name="g", task=variant("34-wrong"), axes={"gamma": (0.8, 0.5)}, seeds=(1, 2, 3)
    )


def test_over_seeds(by_gamma: StudyConfig) -> None:
    answers = {(0.8, 1): 0.9, (0.8, 2): 0.2, (0.8, 3): 1.0, (0.5, 1): 0.1}
    cells = _rows(
        by_gamma,
        {
            place: {"inferential_accuracy": found, "symmetric_accuracy": 1 - found}
            for place, found in answers.items()
        },
    )
    first, second = summary_rows(cells, by_gamma)
    assert (first["gamma"], first["n_seeds"]) == (0.8, 3)
    assert first["labels"] == {"composed": 2, "mixed": 1}
    assert (first["median"], first["low"], first["high"]) == (0.9, 0.2, 1.0)
    assert first["coverage"] == 0.75
    # One seed has a value and no interval.
    assert (second["low"], second["high"], second["coverage"]) == (None, None, None)
    assert (second["median_seen"], second["low_seen"], second["high_seen"]) == (1.0, None, None)
    assert first["median_symmetric"] == pytest.approx(0.1)
    assert first["median_seen"] == 1.0 and first["median_probe"] is None
    assert (second["gamma"], second["n_seeds"], second["median"]) == (0.5, 1, 0.1)


def test_an_answer_that_a_task_has_not_is_null(by_gamma: StudyConfig) -> None:
    outcome = {"inferential_accuracy": 0.5, "symmetric_accuracy": None}
    (row,) = summary_rows(_rows(by_gamma, {(0.5, 1): outcome}), by_gamma)
    assert row["median_symmetric"] is None and row["low_symmetric"] is None


def test_one_trained_cell_a_row_and_none_is_no_row(store: Store) -> None:
    rows = store.summary()
    assert len(rows) == 8 and all(row["n_seeds"] == 2 for row in rows)
    assert [(row["gamma"], row["depth"]) for row in rows][:3] == [(0.4, 1), (0.4, 2), (0.5, 1)]


@pytest.fixture
def best() -> StudyConfig:
    """Return two learning rates of one gamma and two seeds."""
    return StudyConfig(
        name="b",
        task=variant("34-wrong"),
        axes={"gamma": (0.5,)},
        seeds=(1, 2),
        protocol="best-lr",
        lrs=(1e-4, 2e-4),
    )


def _run(inferential: float, symmetric: float, loss: float, **more: object) -> dict[str, object]:
    return {
        "inferential_accuracy": inferential,
        "symmetric_accuracy": symmetric,
        "final_training_loss": loss,
        **more,
    }


def test_the_best_rate_is_a_maximum_and_is_called_one(best: StudyConfig) -> None:
    runs = {
        (1e-4, 0.5, 1): _run(0.9, 0.1, loss=0.3),
        (2e-4, 0.5, 1): _run(0.2, 0.8, loss=0.1),
        (1e-4, 0.5, 2): _run(0.5, 0.3, loss=0.1),
        (2e-4, 0.5, 2): _run(0.4, 0.6, loss=0.2),
    }
    (row,) = summary_rows(_rows(best, runs), best)
    # Each answer has a best rate of its own: the two maxima are of different runs.
    assert row["max_over_lr_inferential_accuracy"] == pytest.approx((0.9 + 0.5) / 2)
    assert row["symmetric_accuracy_at_max_over_lr_inferential_accuracy"] == pytest.approx(0.2)
    assert row["max_over_lr_symmetric_accuracy"] == pytest.approx((0.8 + 0.6) / 2)
    assert row["inferential_accuracy_at_max_over_lr_symmetric_accuracy"] == pytest.approx(0.3)
    # The rate that the training loss chooses, and both answers of that run.
    assert row["lr_of_lowest_training_loss"] == [2e-4, 1e-4]
    assert (row["n_seeds"], row["low"], row["high"]) == (2, 0.2, 0.5)
    assert (row["low_symmetric"], row["high_symmetric"]) == (0.3, 0.8)
    assert "lr" not in row


def test_a_seed_counts_once_all_its_rates_are_trained(best: StudyConfig) -> None:
    runs = {
        (1e-4, 0.5, 1): _run(0.9, 0.1, loss=0.3),
        (2e-4, 0.5, 1): _run(0.2, 0.8, loss=0.1),
        (1e-4, 0.5, 2): _run(0.99, 0.3, loss=0.1),
    }
    (row,) = summary_rows(_rows(best, runs), best)
    assert (row["n_seeds"], row["max_over_lr_inferential_accuracy"]) == (1, 0.9)
    assert summary_rows(_rows(best, {(1e-4, 0.5, 1): _run(0.9, 0.1, loss=0.3)}), best) == []


def test_a_run_that_diverged_is_not_chosen_by_its_loss(best: StudyConfig) -> None:
    runs = {
        (1e-4, 0.5, 1): _run(0.9, 0.1, loss=0.0, diverged=True),
        (2e-4, 0.5, 1): _run(0.2, 0.8, loss=0.5),
    }
    (row,) = summary_rows(_rows(best, runs), best)
    assert row["lr_of_lowest_training_loss"] == [2e-4]


def test_the_shift_of_a_third_answer_is_named(by_gamma: StudyConfig) -> None:
    third = {"unseen_top_shift": -7, "unseen_top_shift_n": 900}
    none = {"inferential_accuracy": 0.0, "symmetric_accuracy": 0.0}
    cells = _rows(by_gamma, {(0.5, 1): {**none, **third}, (0.5, 2): none})
    assert cells["label"].to_list() == ["other", "mixed"]
    assert cells["label_shift"].to_list() == [-7, None]


def test_crossed_seeds_cover_nothing(by_gamma: StudyConfig) -> None:
    crossed = replace(by_gamma, axes={"gamma": (0.8,)}, seeds=(1,), seed_axes={"init": (1, 2, 3)})
    cells = _rows(
        replace(by_gamma, axes={"gamma": (0.8,)}),
        {(0.8, k): {"inferential_accuracy": 0.5} for k in (1, 2, 3)},
    )
    (row,) = summary_rows(cells, crossed)
    assert row["n_seeds"] == 3 and row["coverage"] is None

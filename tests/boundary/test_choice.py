"""The next batch: a product of untried cells, where the labels tell most."""

from __future__ import annotations

import numpy as np
import pytest

from initrate.boundary import choose_batch, draw_curves


def row(labels: str) -> tuple[np.ndarray, np.ndarray]:
    """Hits and tries of a row written as a word a value: "1" a hit, "0" a miss, "." untried."""
    words = labels.split()
    hits = np.array([word.count("1") for word in words])
    return hits, hits + np.array([word.count("0") for word in words])


def untried(tries: np.ndarray, n_seeds: int = 5) -> np.ndarray:
    return np.arange(n_seeds)[None, :] >= tries[:, None]


@pytest.mark.parametrize("width", [1, 3, 8])
@pytest.mark.parametrize(
    "labels",
    [". . . . . . . . . . . . .", "0 . 0 . 0 . 1 . 1 . 1 . 1", "00 . 0 . 01 10 1 . 0 00 . . 00000"],
)
def test_a_batch_is_a_product_of_untried_cells_no_wider_than_asked(labels: str, width: int):
    hits, tries = row(labels)
    batch = choose_batch(draw_curves(hits, tries), untried(tries), row=2, width=width)
    assert batch is not None and 1 <= len(batch) <= width
    assert batch.row == 2
    assert untried(tries)[np.ix_(batch.values, batch.seeds)].all()
    assert len({*batch.values}) == len(batch.values) and len({*batch.seeds}) == len(batch.seeds)


def test_the_first_batch_fills_the_bucket_and_spans_the_range():
    none = np.zeros(13)
    batch = choose_batch(draw_curves(none, none), np.ones((13, 5), bool), width=8)
    assert batch is not None
    assert (len(batch.values), len(batch.seeds)) == (8, 1)
    assert (batch.values[0], batch.values[-1]) == (0, 12)
    assert np.diff(batch.values).max() <= 2  # No band of two resolutions lies between.


def test_what_is_known_is_not_asked_again():
    hits, tries = row("0 . 0 . 0 . 0 . 1 . 1 . 1")
    batch = choose_batch(draw_curves(hits, tries), untried(tries))
    assert batch is not None
    assert 7 in batch.values
    assert all(5 <= value <= 10 for value in batch.values)


def test_where_no_cell_is_left_there_is_no_batch():
    hits, tries = row("00 01 11")
    assert choose_batch(draw_curves(hits, tries), untried(tries, n_seeds=2)) is None


def test_where_no_cell_tells_anything_there_is_no_batch():
    hits, tries = row(" ".join(["0" * 60] * 9 + ["1" * 60] * 9))
    assert choose_batch(draw_curves(hits, tries), untried(tries, n_seeds=61)) is None


def test_failed_cells_are_not_asked_again():
    """They are tried, and have no label."""
    none = np.zeros(5)
    free = np.ones((5, 2), bool)
    free[:, 0] = False
    batch = choose_batch(draw_curves(none, none), free)
    assert batch is not None
    assert batch.seeds == (1,)

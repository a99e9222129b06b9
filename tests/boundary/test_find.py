"""The search loop, on labels that are known."""

from __future__ import annotations

import numpy as np
import pytest

from initrate.boundary import (
    FAILED,
    UNTRIED,
    Aim,
    Batch,
    Labels,
    Reading,
    Shape,
    find,
)

SHAPE = Shape(rows=2, values=13, seeds=5)


class Table:
    """Answers from a table of labels, and keeps what it was asked."""

    def __init__(self, labels: np.ndarray):
        self.labels = labels.astype(np.int8)
        self.asked: list[Batch] = []

    def __call__(self, batch: Batch) -> Labels:
        self.asked.append(batch)
        return self.labels[batch.row][np.ix_(batch.values, batch.seeds)]


def table(*rows: str) -> Table:
    """A row a word, a letter a value: all its seeds have this label."""
    labels = [[[int(letter)] * SHAPE.seeds for letter in row] for row in rows]
    return Table(np.array(labels))


@pytest.mark.parametrize(
    ("row", "places"),
    [
        ("0000000000000", []),
        ("1111111111111", []),
        ("0000000011111", [7.5]),
        ("0111111111111", [0.5]),
        ("1111000000000", [3.5]),
        ("0000110000000", [3.5, 5.5]),
        ("1111100011111", [4.5, 7.5]),
        ("0001110001111", [2.5, 5.5, 8.5]),
    ],
)
def test_clean_rows_are_found_with_few_cells(row: str, places: list[float]):
    ask = table(row, row)
    found = find(SHAPE, ask)
    for reading in found.readings:
        assert reading.resolved
        assert len(reading.crossings) == len(places)
        for crossing, place in zip(reading.crossings, places, strict=True):
            assert crossing.low - 0.5 < place < crossing.high + 0.5
            assert abs(crossing.estimate - place) <= 0.5
            assert crossing.high - crossing.low <= 1 + 1e-9
    # A first batch of eight, and little more than another one for each crossing.
    assert (found.labels != UNTRIED).sum() <= SHAPE.rows * 9 * (1 + max(1, len(places)))


def test_no_cell_is_asked_twice_and_no_batch_is_too_wide():
    ask = table("0000000011111", "0001110001111")
    found = find(SHAPE, ask, width=6)
    cells = [(b.row, value, seed) for b in ask.asked for value in b.values for seed in b.seeds]
    assert len(cells) == len({*cells}) == (found.labels != UNTRIED).sum()
    assert max(map(len, ask.asked)) <= 6


def test_a_search_goes_on_from_its_rounds_as_if_it_had_not_stopped():
    whole = table("0000000011111", "1110000000111")
    expected = find(SHAPE, whole)
    for stop in range(len(whole.asked)):
        again = table("0000000011111", "1110000000111")
        found = find(SHAPE, again, begun=whole.asked[:stop])
        assert again.asked == whole.asked
        assert found.readings == expected.readings


def test_a_row_beside_a_known_one_takes_no_more_cells():
    ask = table("0000000011111", "0000000011111")
    found = find(SHAPE, ask)
    first, second = (found.labels != UNTRIED).sum(axis=(1, 2))
    assert second <= first
    assert [batch.row for batch in ask.asked] == sorted(batch.row for batch in ask.asked)


def test_a_row_unlike_its_neighbour_is_found_all_the_same():
    found = find(SHAPE, table("0000000011111", "0001110000000"))
    assert [len(reading.crossings) for reading in found.readings] == [1, 2]
    assert all(reading.resolved for reading in found.readings)


def test_noise_that_no_seed_settles_ends_unresolved():
    labels = (
        np.arange(SHAPE.seeds)[None, :]
        >= np.array([4, 4, 3, 3, 3, 2, 2, 2, 2, 2, 1, 1, 1])[:, None]
    )
    found = find(SHAPE, Table(np.array([labels, labels])), aim=Aim(confidence=0.95))
    assert not any(reading.resolved for reading in found.readings)


def test_failed_cells_count_for_nothing():
    ask = table("0000000011111", "0000000011111")
    ask.labels[1] = FAILED
    found = find(SHAPE, ask)
    assert found.readings[0].resolved
    assert not found.readings[1].resolved
    assert (found.labels[1] == FAILED).sum() == (found.labels[1] != UNTRIED).sum() > 0


def test_every_reading_is_told():
    told: list[tuple[int, int]] = []
    ask = table("0000000011111", "1111111111111")

    def on_reading(row: int, reading: Reading, labels: Labels) -> None:
        told.append((row, int((labels[row] != UNTRIED).sum())))

    found = find(SHAPE, ask, on_reading=on_reading)
    assert told[0] == (0, 0)
    for row in range(SHAPE.rows):
        last = [n_cells for at, n_cells in told if at == row][-1]
        assert last == (found.labels[row] != UNTRIED).sum()

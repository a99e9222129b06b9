"""Crossings: their number, places, intervals and doubt, from curves that are known."""

from __future__ import annotations

import numpy as np
import pytest

from initrate.boundary import Aim, Curves, draw_curves, read_crossings

NAN = float("nan")


def curves(crossings: list[list[float]], starts_high: list[bool], n: int = 9) -> Curves:
    return Curves(np.array(crossings), np.array(starts_high), np.full((len(crossings), n), 0.5))


@pytest.mark.parametrize(
    ("crossings", "starts_high", "rises"),
    [
        ([NAN, NAN], False, []),
        ([3.2, NAN], False, [True]),
        ([3.2, NAN], True, [False]),
        ([3.2, 5.1], False, [True, False]),
        ([3.2, 5.1], True, [False, True]),
        # Outside the range is no crossing; it only says on which side the range begins.
        ([-0.4, NAN], False, []),
        ([-0.4, 5.1], False, [False]),
        ([8.3, NAN], False, []),
        ([3.2, 8.3], False, [True]),
    ],
)
def test_crossings_inside_the_range_are_told(
    crossings: list[float], starts_high: bool, rises: list[bool]
):
    reading = read_crossings(curves([crossings] * 50, [starts_high] * 50), Aim())
    assert [found.rises for found in reading.crossings] == rises
    assert reading.resolved and reading.doubt == 0
    inside = [place for place in crossings if 0 < place < 8]
    for found, place in zip(reading.crossings, inside, strict=True):
        assert found.estimate == place
        assert found.low < place < found.high
        assert found.high - found.low < 0.2


def test_the_interval_is_the_shortest_with_the_confidence():
    places = [[1.0 + 0.005 * k] for k in range(90)] + [[7.0]] * 10
    reading = read_crossings(curves(places, [False] * 100), Aim(confidence=0.9))
    (found,) = reading.crossings
    assert 0.9 < found.low < 1 and 1.44 < found.high < 1.55
    assert reading.resolved
    assert not read_crossings(curves(places, [False] * 100), Aim(confidence=0.95)).resolved


@pytest.mark.parametrize(("missed", "resolved"), [(0.05, False), (0.2, True)])
def test_other_pictures_are_the_doubt(missed: float, resolved: bool):
    mixed = [[3.2, NAN]] * 90 + [[3.2, 6.0]] * 10
    reading = read_crossings(curves(mixed, [False] * 100), Aim(missed=missed))
    assert len(reading.crossings) == 1
    assert reading.doubt == pytest.approx(0.1)
    assert reading.resolved is resolved


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Rows drawn from the model's own beliefs: coverage is what the confidence is."""
    rng = np.random.default_rng(5)
    truth = draw_curves(np.zeros(9), np.zeros(9), n_curves=600, seed=11)
    held: list[bool] = []
    for crossings, probability in zip(truth.crossings, truth.probability, strict=True):
        inside = crossings[(crossings > 0) & (crossings < 8)]
        hits = rng.binomial(3, probability)
        reading = read_crossings(draw_curves(hits, np.full(9, 3)), Aim(confidence=0.8))
        if len(inside) == len(reading.crossings):
            held += [
                found.low <= place <= found.high
                for found, place in zip(reading.crossings, inside, strict=True)
            ]
    assert len(held) > 300
    error = (0.8 * 0.2 / len(held)) ** 0.5
    # The interval is the shortest of all and has whole steps: a little wider than it need be.
    assert 0.8 - 4 * error < np.mean(held) < 0.8 + 5 * error + 0.05

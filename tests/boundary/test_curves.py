"""The posterior of curves: against a sum over all sets of crossings, and where labels say all."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest

from initrate.boundary import Aim, draw_curves, read_crossings
from initrate.boundary import _curves as model

N = 4
"""Values of the small rows whose sets of crossings are all gone through."""


def share(away: float, width: float, lapse: float) -> float:
    return lapse + (1 - 2 * lapse) / (1 + math.exp(-2 * math.log(9) * away / width))


def posterior(hits: list[int], tries: list[int]) -> dict[tuple[float, ...], float]:
    """The weight of every set of crossings, summed over kinds and signs, one by one."""
    between = model.places_between(N)
    n_places = (N + 1) * between
    places = [-1 + (k + 0.5) / between for k in range(n_places)]
    far = [
        chosen
        for n in range(5)
        for chosen in itertools.combinations(places, n)
        if all(b - a >= model.NARROWEST - 1e-9 for a, b in itertools.pairwise(chosen))
    ]
    weights: dict[tuple[float, ...], float] = defaultdict(float)
    for chosen, width, (lapse, prior) in itertools.product(far, model.WIDTHS, model.LAPSES.items()):
        before = prior / len(model.WIDTHS) / 2 * model.NO_CROSSING
        if chosen:
            before *= (1 - model.NO_CROSSING) / model.NO_CROSSING / n_places
            before *= (model.ANOTHER / n_places) ** (len(chosen) - 1)
            room = sum(p - chosen[-1] >= model.NARROWEST - 1e-9 for p in places)
            before *= 1 - model.ANOTHER * room / n_places
        for starts_high in (False, True):
            fit = 1.0
            for value in range(N):
                probability = 1 - lapse if starts_high else lapse
                if chosen:
                    nearest = min(chosen, key=lambda place: abs(value - place))
                    rises = (chosen.index(nearest) % 2 == 0) != starts_high
                    away = value - nearest if rises else nearest - value
                    probability = share(away, width, lapse)
                fit *= probability ** hits[value] * (1 - probability) ** (
                    tries[value] - hits[value]
                )
            weights[chosen] += before * fit
    return weights


@pytest.mark.parametrize(
    ("hits", "tries"),
    [
        ([0, 0, 0, 0], [0, 0, 0, 0]),
        ([0, 1, 2, 3], [3, 3, 3, 3]),
        ([2, 0, 0, 2], [2, 1, 1, 2]),
        ([0, 3, 3, 0], [3, 3, 3, 3]),
    ],
)
def test_the_chain_sums_over_all_sets_of_crossings(hits: list[int], tries: list[int]):
    n_curves = 20_000
    curves = draw_curves(np.array(hits), np.array(tries), n_curves=n_curves)
    weights = posterior(hits, tries)
    total = sum(weights.values())
    drawn = Counter((~np.isnan(curves.crossings)).sum(axis=1).tolist())
    for n in range(4):
        expected = sum(w for chosen, w in weights.items() if len(chosen) == n) / total
        # Four standard errors of a share, and one curve for what is nearly never drawn.
        error = 4 * math.sqrt(expected * (1 - expected) / n_curves) + 1 / n_curves
        assert abs(drawn[n] / n_curves - expected) < error
    first = curves.crossings[:, 0]
    mean = sum(w * chosen[0] for chosen, w in weights.items() if chosen)
    mean /= sum(w for chosen, w in weights.items() if chosen)
    with_one = first[~np.isnan(first)]
    assert abs(with_one.mean() - mean) < 4 * with_one.std() / math.sqrt(len(with_one))


def test_curves_are_one_half_at_their_crossings_and_nowhere_else():
    curves = draw_curves(np.zeros(9), np.zeros(9))
    for crossings, starts_high, probability in zip(
        curves.crossings, curves.starts_high, curves.probability, strict=True
    ):
        n_below = (crossings[None, :] < np.arange(9)[:, None]).sum(axis=1)
        assert ((probability > 0.5) == (starts_high ^ (n_below % 2 == 1))).all()


def test_the_same_labels_give_the_same_curves():
    hits, tries = np.array([0, 1, 1, 2]), np.array([2, 2, 1, 2])
    first, second = (draw_curves(hits, tries) for _ in range(2))
    assert np.array_equal(first.crossings, second.crossings, equal_nan=True)
    assert np.array_equal(first.probability, second.probability)


@pytest.mark.parametrize("n", [3, 41, 100])
def test_many_labels_leave_no_weight_at_zero(n: int):
    hits = np.where(np.arange(n) >= n // 2, 20, 0)
    curves = draw_curves(hits, np.full(n, 20))
    assert np.isfinite(curves.probability).all()
    (found,) = read_crossings(curves, Aim()).crossings
    assert n // 2 - 1 < found.estimate < n // 2

"""The model of one row of a diagram: curves of label probability, drawn from their posterior.

A curve is one half at its crossings and nowhere else: at distance d from the nearest one, its
probability is lapse + (1 - 2 lapse) / (1 + exp(-9-to-1 odds at half the width)). That is the
psychometric function of adaptive threshold estimation (Watson 2017, QUEST+), with any number of
thresholds. Between two crossings only these two matter, so that the sum over all sets of crossings
is a chain of matrix products: the posterior is exact, for few labels too, and needs no fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

Floats = NDArray[np.float64]

WIDTHS = (0.25, 0.7, 1.4, 2.5)
"""How far a curve takes from 10 % to 90 %, in resolutions; each as probable beforehand."""
LAPSES = {0.005: 0.7, 0.05: 0.3}
"""Share of labels that differ far from any crossing, and how probable it is beforehand."""
NO_CROSSING = 0.3
"""Probability beforehand that a curve has no crossing."""
ANOTHER = 0.4
"""Expected number of further crossings beforehand, had they the whole range for them."""
NARROWEST = 1.5
"""Least distance of two crossings, in resolutions."""
APART = 1.5
"""How far a crossing moves from one row to the next, in resolutions; a standard deviation."""
ALONE = 0.25
"""How much less probable a crossing is beforehand that no neighbouring row has, at the least."""
_ODDS = 2 * math.log(9)


def places_between(n: int) -> int:
    """Return how many places a crossing may have between two neighbouring ones of n values.

    Time and memory go with the square of all places: in long rows they lie farther apart.

    >>> places_between(13), places_between(100)
    (6, 4)
    """
    return 6 if n <= 30 else 4


@dataclass(frozen=True, slots=True)
class Curves:
    """Curves drawn from the posterior, all of equal weight; the values are 0, 1 ... n - 1."""

    crossings: Floats
    """Shape (curves, most crossings): places in rising order, NaN behind the last."""
    starts_high: NDArray[np.bool_]
    """Whether the label is probable left of the first crossing."""
    probability: Floats
    """Shape (curves, values): how probable the label is there."""


def draw_curves(
    hits: Floats,
    tries: Floats,
    *,
    beside: Sequence[Curves] = (),
    n_curves: int = 1000,
    seed: int = 0,
) -> Curves:
    """Return curves drawn from the posterior, given how many of the tries at each value hit.

    `beside` are curves of neighbouring rows, each drawn from its own labels alone: where they have
    crossings this row may sooner have some too. It may have others, or none, all the same.

    >>> curves = draw_curves(np.array([0, 0, 3, 3]), np.array([3, 3, 3, 3]))
    >>> curves.probability.shape
    (1000, 4)
    >>> bool(np.median(curves.crossings[:, 0].round()) in (1, 2))
    True
    """
    favour = _favour(beside, len(hits))
    chain = _Chain.of(np.asarray(hits, float), np.asarray(tries, float), favour)
    return chain.draw(n_curves, np.random.default_rng(seed))


def _places(n: int) -> Floats:
    """All places of crossings: one resolution beyond the range on either side too."""
    between = places_between(n)
    return -1 + (np.arange((n + 1) * between) + 0.5) / between


def _favour(beside: Sequence[Curves], n: int) -> Floats:
    """By which factor a crossing is the more probable beforehand; shape (2, places).

    Crossings of neighbouring rows, spread by how far they move, over what even odds would be.
    """
    places = _places(n)
    if not beside:
        return np.ones((2, len(places)))
    spread = np.exp(-0.5 * ((places[:, None] - places) / APART) ** 2)
    spread /= spread.sum(axis=0)
    expected = np.zeros((2, len(places)))
    for curves in beside:
        there = np.flatnonzero(~np.isnan(curves.crossings))
        falls = (np.arange(curves.crossings.shape[1]) % 2 == 1) ^ curves.starts_high[:, None]
        index = np.searchsorted(places, curves.crossings.ravel()[there] - 1e-9)
        weight = 1 / len(curves.crossings) / len(beside)
        np.add.at(expected, (falls.ravel()[there].astype(int), index), weight)
    return ALONE + (1 - ALONE) * len(places) * expected @ spread.T


@dataclass(frozen=True, slots=True)
class _Chain:
    """Weights of all ways through the crossings; first axes: kind of curve, then sign.

    A kind is a width and a lapse. Sign 0 rises at a crossing, sign 1 falls; the next one has the
    other sign. All likelihoods are over that of the best free fit, so that nothing underflows.
    """

    n: int
    places: Floats
    widths: Floats
    lapses: Floats
    none: Floats
    """Shape (kinds, 2): no crossing; the label improbable, probable."""
    first: Floats
    """Shape (kinds, 2, places): a first crossing there, and all that is left of it."""
    onward: Floats
    """Shape (kinds, 2, places, places): from one crossing to the next."""
    last: Floats
    """Shape (kinds, 2, places): no crossing behind this one."""

    @classmethod
    def of(cls, hits: Floats, tries: Floats, favour: Floats) -> _Chain:
        n = len(hits)
        places = _places(n)
        n_places = len(places)
        widths, lapses, prior = _kinds()
        right = np.clip(np.ceil(places), 0, n).astype(int)
        middle = np.floor((places[:, None] + places[None, :]) / 2) + 1
        middle = np.clip(middle, right[:, None], np.maximum(right[None, :], right[:, None]))
        middle = middle.astype(int)

        # Sums of log likelihoods over the values below each bound: (kinds, 2, places, n + 1).
        away = (np.arange(n) - places[:, None]) * np.array([1, -1])[:, None, None]
        share = _share(away, widths[:, None, None, None], lapses[:, None, None, None])
        best = xlogy(hits, hits / np.maximum(tries, 1))
        best += xlogy(tries - hits, (tries - hits) / np.maximum(tries, 1))
        fit = hits * np.log(share) + (tries - hits) * np.log1p(-share) - best
        below = np.concatenate([np.zeros((*fit.shape[:3], 1)), fit.cumsum(axis=-1)], axis=-1)

        each = np.arange(n_places)
        at_right = below[:, :, each, right]
        after = below[:, :, each[:, None], middle] - at_right[..., None]
        other = below[:, ::-1]
        before = other[:, :, each, right][:, :, None, :] - other[:, :, each[None, :], middle]
        may_follow = places[None, :] - places[:, None] >= NARROWEST - 1e-9
        onward = np.exp(np.where(may_follow, after + before, -np.inf)) * (ANOTHER / n_places)
        onward *= favour[::-1, None, :]
        ends = 1 - ANOTHER * may_follow.sum(axis=1) / n_places
        flat = np.stack([lapses, 1 - lapses], axis=1)
        total = hits.sum() * np.log(flat) + (tries - hits).sum() * np.log1p(-flat) - best.sum()
        weight = prior[:, None] / 2
        return cls(
            n=n,
            places=places,
            widths=widths,
            lapses=lapses,
            none=weight * NO_CROSSING * np.exp(total),
            first=weight[..., None] * ((1 - NO_CROSSING) / n_places) * favour * np.exp(at_right),
            onward=onward,
            last=ends * np.exp(below[..., -1] - at_right),
        )

    def draw(self, n_curves: int, rng: np.random.Generator) -> Curves:
        """The first crossing by its whole weight, then each next one given the one before."""
        rest = self._rest()
        n_kinds, _, n_places = self.first.shape
        weights = np.concatenate([self.none[..., None], self.first * rest], axis=-1)
        # Evenly spread over the cumulated weights: less noise than independent draws.
        ticks = (np.arange(n_curves) + rng.random()) / n_curves
        cumulated = weights.ravel().cumsum()
        found = np.searchsorted(cumulated, ticks * cumulated[-1], side="right")
        found = np.minimum(found, weights.size - 1)
        kind, sign, event = np.unravel_index(found, (n_kinds, 2, n_places + 1))
        starts_high = sign == 1
        crossings: list[Floats] = []
        place, alive = event - 1, event > 0
        while alive.any():
            crossings.append(np.where(alive, self.places[place], np.nan))
            going = np.flatnonzero(alive)
            k, s, p = kind[going], sign[going], place[going]
            ahead = self.onward[k, s, p] * rest[k, 1 - s]
            choices = np.concatenate([self.last[k, s, p][:, None], ahead], axis=1).cumsum(axis=1)
            mark = rng.random(len(going)) * choices[:, -1]
            chosen = (choices <= mark[:, None]).sum(axis=1)
            alive[going] = chosen > 0
            place[going] = np.maximum(chosen - 1, 0)
            sign[going] = 1 - s
        table = np.stack(crossings, axis=1) if crossings else np.full((n_curves, 1), np.nan)
        return Curves(table, starts_high, self._probability(table, starts_high, kind))

    def _rest(self) -> Floats:
        """The weight of all that may follow a crossing, summed over one more crossing at a time."""
        rest = step = self.last
        for _ in range(math.ceil((self.n + 1) / NARROWEST)):
            step = np.matmul(self.onward, step[:, ::-1, :, None])[..., 0]
            rest = rest + step
            if step.max() < 1e-12 * rest.max():
                break
        return rest

    def _probability(
        self, crossings: Floats, starts_high: NDArray[np.bool_], kind: NDArray[np.int64]
    ) -> Floats:
        away = np.arange(self.n)[:, None] - np.nan_to_num(crossings, nan=np.inf)[:, None, :]
        nearest = np.abs(away).argmin(axis=-1)
        distance = np.take_along_axis(away, nearest[..., None], axis=-1)[..., 0]
        rises = (nearest % 2 == 0) != starts_high[:, None]
        signed = np.where(rises, distance, -distance)
        return _share(signed, self.widths[kind][:, None], self.lapses[kind][:, None])


def _share(away: Floats, widths: Floats, lapses: Floats) -> Floats:
    """The probability at a distance behind a rising crossing."""
    return lapses + (1 - 2 * lapses) * expit(_ODDS * away / widths)


def _kinds() -> tuple[Floats, Floats, Floats]:
    pairs = [(w, lapse, p / len(WIDTHS)) for w in WIDTHS for lapse, p in LAPSES.items()]
    widths, lapses, prior = np.array(pairs).T
    return widths, lapses, prior

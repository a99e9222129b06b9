"""Which cells of a row are trained next: those whose labels, taken together, tell most.

Of where the crossings lie, the labels of a batch tell I = H(labels) - H(labels | crossings), the
measure of BALD (Houlsby 2011; Kirsch 2019 for batches). With curves drawn from the posterior both
terms are sums over all outcomes of the batch, so that cells which would tell the same count once,
and cells which would only tell how steep or how clean a curve is count for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb, entr

from initrate.boundary._curves import Curves, Floats

CURVES = 256
"""Curves that a choice is made with."""
PRICES = (0.05, 0.015)
"""What each cell of a batch must tell, in nats (a fair coin has 0.69), so that buckets are filled
with what is worth it; the second where nothing is worth the first. Below, a row is exhausted."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Cells of one row: each of the values with each of the seeds, all by their number."""

    row: int
    values: tuple[int, ...]
    seeds: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.values) * len(self.seeds)


def choose_batch(
    curves: Curves, untried: NDArray[np.bool_], *, row: int = 0, width: int = 8
) -> Batch | None:
    """Return the next batch of a row, of at most `width` cells, or None where none is worth it.

    `untried` has the shape (values, seeds). A batch is a product of values and seeds, all untried;
    the first one of a row spans its range evenly, so that no wide band is left out by chance.

    >>> from initrate.boundary._curves import draw_curves
    >>> none = np.zeros(9)
    >>> batch = choose_batch(draw_curves(none, none), np.ones((9, 3), bool), width=4)
    >>> len(batch.values), batch.seeds
    (4, (0,))
    """
    if untried.all():
        n_values = len(untried)
        evenly = np.linspace(0, n_values - 1, min(width, n_values)).round()
        return Batch(row, tuple(evenly.astype(int).tolist()), (0,))
    step = max(1, len(curves.probability) // CURVES)
    share, bounds = _by_crossings(curves, step)
    for price in PRICES:
        best, most = None, 0.0
        for seeds, open_values in _seed_sets(untried, width):
            n_values = width // len(seeds)
            values, gain = _values(share, bounds, open_values, len(seeds), n_values, price)
            worth = gain - price * len(values) * len(seeds)
            if worth > most + 1e-9:
                best, most = Batch(row, tuple(sorted(values)), seeds), worth
        if best:
            return best
    return None


def _seed_sets(
    untried: NDArray[np.bool_], width: int
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Sets of neighbouring seeds with the values at which all are untried; of equal ones one."""
    n_seeds = untried.shape[1]
    found: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = {}
    for size in range(1, min(width, n_seeds) + 1):
        for first in range(n_seeds - size + 1):
            free = untried[:, first : first + size].all(axis=1)
            values = tuple(np.flatnonzero(free).tolist())
            if values:
                found.setdefault((size, values), tuple(range(first, first + size)))
    return [(seeds, values) for (_, values), seeds in found.items()]


def _by_crossings(curves: Curves, step: int) -> tuple[Floats, NDArray[np.int64]]:
    """Every so many of the curves, with the bounds of those alike: crossings half a step apart."""
    last = curves.probability.shape[1] - 1
    places = np.nan_to_num(curves.crossings[::step], nan=np.inf)
    inside = (places > 0) & (places < last)
    high = curves.starts_high[::step] ^ ((places <= 0).sum(axis=1) % 2 == 1)
    rounded = np.sort(np.where(inside, np.floor(places * 2), np.inf), axis=1)
    _, kind = np.unique(np.column_stack([high, rounded]), axis=0, return_inverse=True)
    order = np.argsort(kind.ravel(), kind="stable")
    bounds = np.flatnonzero(np.diff(kind.ravel()[order], prepend=-1))
    return curves.probability[::step][order], bounds


def _values(
    share: Floats,
    bounds: NDArray[np.int64],
    open_values: Sequence[int],
    n_seeds: int,
    most: int,
    price: float,
) -> tuple[list[int], float]:
    """Values one by one, each the best beside those before, and what all tell in nats."""
    n_curves, candidates = len(share), list(open_values)
    counts = np.arange(n_seeds + 1)[:, None, None]
    outcome = comb(n_seeds, counts) * share**counts * (1 - share) ** (n_seeds - counts)
    # Probability of each outcome together with each curve, the curves alike side by side.
    joint = np.full((1, n_curves), 1 / n_curves)
    sizes = np.diff(np.append(bounds, n_curves)) / n_curves
    chosen: list[int] = []
    told = 0.0
    while candidates and len(chosen) < most:
        of_candidates = outcome[:, :, candidates].swapaxes(0, 1).reshape(n_curves, -1)
        ends = [*bounds[1:].tolist(), n_curves]
        parts = [
            joint[:, a:b] @ of_candidates[a:b] for a, b in zip(bounds.tolist(), ends, strict=True)
        ]
        together = np.stack(parts).reshape(len(parts), -1, len(candidates))
        unknown = entr(together).sum(axis=(0, 1)) - entr(sizes).sum()
        information = entr(together.sum(axis=0)).sum(axis=0) - unknown
        k = int(np.argmax(information.round(9)))
        if chosen and information[k] - told < price * n_seeds:
            break
        chosen.append(candidates.pop(k))
        told = float(information[k])
        joint = (outcome[:, None, :, chosen[-1]] * joint[None]).reshape(-1, n_curves)
    return chosen, told

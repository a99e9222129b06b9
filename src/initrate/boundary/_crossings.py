"""What the curves say of one row: how many crossings, where, and how sure that is."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from initrate.boundary._curves import Curves, Floats, places_between


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where the probability of the label passes one half, with the interval at the confidence."""

    estimate: float
    low: float
    high: float
    rises: bool
    """Whether the label is the more probable one above it."""


@dataclass(frozen=True, slots=True)
class Aim:
    """When a row counts as resolved."""

    confidence: float = 0.9
    """Of each crossing's interval, which is to be one resolution wide at most."""
    missed: float = 0.01
    """Most probability that there are other crossings than those that are told."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The crossings of one row, in units of the resolution from the first value on."""

    crossings: tuple[Crossing, ...]
    doubt: float
    """Probability that the row has other crossings than these: more, fewer, or none."""
    resolved: bool


def read_crossings(curves: Curves, aim: Aim) -> Reading:
    """Return the most probable number of crossings between the first and the last value.

    >>> from initrate.boundary._curves import draw_curves
    >>> hits, tries = np.array([0, 0, 0, 4, 4, 4]), np.full(6, 4)
    >>> reading = read_crossings(draw_curves(hits, tries), Aim())
    >>> [(2 < found.estimate < 3, found.rises) for found in reading.crossings]
    [(True, True)]
    >>> reading.resolved
    True
    """
    last = curves.probability.shape[1] - 1
    inside = (curves.crossings > 0) & (curves.crossings < last)
    n_before = (curves.crossings <= 0).sum(axis=1)
    # The label left of the first crossing inside: one outside, below it, turns it over.
    high = curves.starts_high ^ (n_before % 2 == 1)
    kinds = Counter(zip(inside.sum(axis=1).tolist(), high.tolist(), strict=True))
    (n, starts_high), members = max(kinds.items(), key=lambda kind: (kind[1], kind[0]))
    chosen = (inside.sum(axis=1) == n) & (high == starts_high)
    places = np.where(inside, curves.crossings, np.inf)[chosen]
    places = np.sort(places, axis=1)[:, :n]
    half = 0.5 / places_between(last + 1)
    crossings = tuple(
        _crossing(places[:, k], aim.confidence, half, rises=(k % 2 == 0) != starts_high)
        for k in range(n)
    )
    doubt = 1 - members / len(curves.crossings)
    narrow = all(found.high - found.low <= 1 + 1e-9 for found in crossings)
    return Reading(crossings, doubt, narrow and doubt <= aim.missed)


def _crossing(places: Floats, confidence: float, half: float, *, rises: bool) -> Crossing:
    """The shortest interval that holds the share; each place stands for the step around it."""
    ordered = np.sort(places)
    n_held = math.ceil(confidence * len(ordered))
    lengths = ordered[n_held - 1 :] - ordered[: len(ordered) - n_held + 1]
    # Of several shortest ones the middle one.
    shortest = np.flatnonzero(lengths <= lengths.min() + 1e-9)
    first = int(shortest[len(shortest) // 2])
    return Crossing(
        estimate=float(np.median(ordered)),
        low=float(ordered[first] - half),
        high=float(ordered[first + n_held - 1] + half),
        rises=rises,
    )

"""The median and an interval for it that assumes nothing about the distribution."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from statistics import median
from typing import NamedTuple

from initrate.errors import InputError
from initrate.statistics._proportion import check_level


class MedianInterval(NamedTuple):
    """A median and its interval; unpacks as (median, low, high)."""

    median: float
    low: float
    high: float


def median_interval(values: Iterable[float], level: float = 0.95) -> MedianInterval:
    """Return the median and the narrowest symmetric pair of order statistics that covers it.

    Between the r-th smallest and the r-th largest of n values the true median lies with
    probability 1 - 2 P(Binomial(n, 1/2) < r), or more, whatever the distribution. With few
    values (below six at level 0.95) no pair reaches the level: then the interval is
    (smallest, largest), and `median_coverage` says how much that covers.

    >>> median_interval([0.1, 0.9, 0.5])
    MedianInterval(median=0.5, low=0.1, high=0.9)
    """
    ordered = sorted(float(x) for x in values)
    if not ordered:
        raise InputError("no values to take a median of: expected at least one")
    if any(math.isnan(x) for x in ordered):
        raise InputError("a value to take a median of is nan: expected numbers")
    rank = _rank(len(ordered), level)
    return MedianInterval(float(median(ordered)), ordered[rank - 1], ordered[-rank])


def median_coverage(n: int, level: float = 0.95) -> float:
    """Return the probability that `median_interval` of `n` values holds the true median.

    >>> median_coverage(3), median_coverage(6)
    (0.75, 0.96875)
    """
    if n < 1:
        raise InputError(f"{n!r} values: expected at least one")
    below = sum(math.comb(n, i) for i in range(_rank(n, level)))
    return float(1 - Fraction(2 * below, 2**n)) if n > 1 else 0.0


def _rank(n: int, level: float) -> int:
    """Return the largest r whose pair of order statistics reaches the level, or 1."""
    check_level(level)
    # Whole numbers: the tail 2 P(Binomial(n, 1/2) < r) <= 1 - level, times 2 ** n.
    allowed = (1 - Fraction(level)) * 2**n / 2
    rank, below, term = 0, 0, 1
    while rank < (n + 1) // 2 and below + term <= allowed:
        below += term
        term = term * (n - rank) // (rank + 1)
        rank += 1
    return max(rank, 1)

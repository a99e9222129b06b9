"""Intervals of a share."""

from __future__ import annotations

import math
from statistics import NormalDist

from initrate.errors import InputError


def check_level(level: float) -> None:
    """Check that a level of confidence lies between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise InputError(f"level is {level!r}: expected a number between 0 and 1")


def wilson(k: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the Wilson interval (low, high) of the share behind `k` successes in `n` trials.

    With no trials nothing is known: (0, 1).

    >>> [round(bound, 3) for bound in wilson(8, 10)]
    [0.49, 0.943]
    """
    check_level(level)
    if not 0 <= k <= n:
        raise InputError(f"{k!r} successes in {n!r} trials: expected 0 <= successes <= trials")
    if n == 0:
        return (0.0, 1.0)
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = k / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At the ends the bound is exact; in floats it would miss by the last bit.
    low = 0.0 if k == 0 else max(0.0, centre - reach)
    high = 1.0 if k == n else min(1.0, centre + reach)
    return (low, high)

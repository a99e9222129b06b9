"""How far a measured std may lie from the true one: from the number of values alone."""

from __future__ import annotations

import math


def std_interval(
    std: float, size: int, *, uniform: bool = False, sigmas: float = 5.0
) -> tuple[float, float]:
    """Return where the measured std of `size` draws lies, but for a chance of `sigmas`.

    Of normal draws the sum of squares is chi-squared with `size` degrees of freedom; its quantiles
    are those of Wilson and Hilferty. Of uniform draws the square has the variance 4/5 of its mean
    squared, and the sum is taken as normal, no smaller than 0 and no larger than the bound allows.

    >>> low, high = std_interval(0.1, 10_000)
    >>> round(low, 4), round(high, 4)
    (0.0965, 0.1036)
    """
    if size < 1:
        return 0.0, math.inf
    if uniform:
        spread = sigmas * math.sqrt(0.8 / size)
        return std * math.sqrt(max(0.0, 1 - spread)), std * math.sqrt(min(3.0, 1 + spread))
    middle, spread = 1 - 2 / (9 * size), sigmas * math.sqrt(2 / (9 * size))
    return std * max(0.0, middle - spread) ** 1.5, std * (middle + spread) ** 1.5


def largest_expected(size: int) -> float:
    """Return how many std the largest of `size` normal draws exceeds once in a million times.

    >>> round(largest_expected(10**8), 2)
    8.03
    """
    return math.sqrt(2 * math.log(1e6 * max(size, 1)))

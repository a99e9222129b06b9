"""The interval of the median: exact ranks, exact coverage, bad input."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from initrate.errors import InputError
from initrate.statistics import median_coverage, median_interval

# Ranks of the 95 % interval of a median as tables of the sign test give them: the first n at
# which the r-th value counts.
FIRST_N = {1: 6, 2: 9, 3: 12, 4: 15, 5: 17, 6: 20, 7: 23, 8: 25}


@pytest.mark.parametrize(("rank", "n"), FIRST_N.items())
def test_ranks_of_the_sign_test(rank: int, n: int) -> None:
    values = list(range(1, n + 1))
    assert median_interval(values)[1:] == (rank, n + 1 - rank)
    assert median_interval(values[:-1])[1] == max(rank - 1, 1)


@pytest.mark.parametrize("n", range(1, 200))
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_the_narrowest_pair_that_covers(n: int, level: float) -> None:
    low = int(median_interval(range(1, n + 1), level).low)
    covers = 1 - 2 * binom.cdf(low - 1, n, 0.5)
    narrower = 1 - 2 * binom.cdf(low, n, 0.5)
    assert narrower < level - 1e-12 or 2 * (low + 1) > n + 1
    if low > 1:
        assert covers >= level - 1e-12
    if n > 1:
        assert median_coverage(n, level) == pytest.approx(covers, abs=1e-12)


def test_few_values_give_their_whole_range() -> None:
    assert median_interval([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)
    assert median_interval([1.0]) == (1.0, 1.0, 1.0)
    assert [median_coverage(n) for n in (1, 2, 3, 5)] == [0.0, 0.5, 0.75, 0.9375]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_order_and_direction(values: list[float]) -> None:
    median, low, high = median_interval(values)
    assert min(values) <= low <= median <= high <= max(values)
    assert low in values and high in values
    assert median_interval([-x for x in values]) == (-median, -high, -low)
    assert median == np.median(values)


def test_coverage_in_a_simulation() -> None:
    generator = np.random.default_rng(0)
    n, n_repeats = 20, 4000
    # Skewed, so that no normal approximation would do; its median is ln 2.
    samples = generator.exponential(size=(n_repeats, n))
    covered = sum(
        interval.low <= math.log(2) <= interval.high for interval in map(median_interval, samples)
    )
    expected = median_coverage(n)
    error = 5 * math.sqrt(expected * (1 - expected) / n_repeats)
    assert abs(covered / n_repeats - expected) < error


def test_more_values_narrow_the_interval() -> None:
    widths = []
    for n in (6, 25, 100, 1000):
        _, low, high = median_interval(np.linspace(0, 1, n))
        widths.append(high - low)
    assert all(later < earlier for earlier, later in pairwise(widths))


def test_bad_input() -> None:
    with pytest.raises(InputError, match="no values to take a median of"):
        median_interval([])
    with pytest.raises(InputError, match="is nan: expected numbers"):
        median_interval([0.1, math.nan])
    with pytest.raises(InputError, match="level is 1: expected a number between 0 and 1"):
        median_interval([0.1], 1)
    with pytest.raises(InputError, match="0 values: expected at least one"):
        median_coverage(0)

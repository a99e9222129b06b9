"""Tolerances of a measured std, against exact distributions and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2, norm

from initrate.measure import largest_expected, std_interval

SIZES = [1, 2, 3, 5, 10, 30, 100, 1000, 10**6]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sigmas", [3.0, 5.0])
def test_of_normal_draws_against_chi_squared(size: int, sigmas: float):
    low, high = std_interval(1.0, size, sigmas=sigmas)
    exact = [math.sqrt(chi2.ppf(norm.cdf(side), size) / size) for side in (-sigmas, sigmas)]
    # Wilson and Hilferty's quantiles: never too narrow, and near from thirty values on.
    assert low <= exact[0] * 1.01 and high >= exact[1] * 0.99
    if size >= 30:
        assert low == pytest.approx(exact[0], abs=0.02)
        assert high == pytest.approx(exact[1], rel=0.02)


@pytest.mark.parametrize("uniform", [False, True], ids=["normal", "uniform"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 10, 30, 100])
def test_how_often_draws_miss_it(size: int, uniform: bool):
    generator, n_trials = np.random.default_rng(size), 40_000
    shape = (n_trials, size)
    draws = (
        generator.uniform(-math.sqrt(3), math.sqrt(3), shape)
        if uniform
        else generator.normal(size=shape)
    )
    stds = np.sqrt((draws**2).mean(axis=1))
    low, high = std_interval(1.0, size, uniform=uniform, sigmas=3.0)
    # Three sigmas are missed 27 times in 10,000; of skewed sums some more on one side.
    assert ((stds < low) | (stds > high)).mean() < 0.0065
    low, high = std_interval(1.0, size, uniform=uniform)
    assert low <= stds.min() and stds.max() <= high


def test_it_is_not_too_wide():
    generator = np.random.default_rng(3)
    stds = np.sqrt((generator.normal(size=(20_000, 50)) ** 2).mean(axis=1))
    low, high = std_interval(1.0, 50, sigmas=2.0)
    missed = ((stds < low) | (stds > high)).mean()
    assert 0.035 < missed < 0.056


@pytest.mark.parametrize("uniform", [False, True])
def test_it_grows_with_the_std_and_narrows_with_the_size(uniform: bool):
    ones = [std_interval(1.0, size, uniform=uniform) for size in SIZES]
    assert all(low <= 1 <= high for low, high in ones)
    widths = [high - low for low, high in ones]
    assert widths == sorted(widths, reverse=True)
    low, high = std_interval(0.02, 1000, uniform=uniform)
    assert (low / 0.02, high / 0.02) == pytest.approx(std_interval(1.0, 1000, uniform=uniform))


def test_of_nothing_anything_may_be_measured():
    assert std_interval(1.0, 0) == (0.0, math.inf)
    assert std_interval(0.0, 100) == (0.0, 0.0)


@pytest.mark.parametrize("size", [1, 100, 10**6, 10**9])
def test_the_largest_value_that_chance_gives(size: int):
    # The chance that one of `size` draws is beyond it, in either direction, is under one in 10^6.
    assert 2 * size * norm.sf(largest_expected(size)) < 1e-6
    assert 2 * size * norm.sf(largest_expected(size) - 0.7) > 1e-7

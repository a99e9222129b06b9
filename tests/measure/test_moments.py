"""Moments: equal to NumPy's, whatever the blocks, and told where there is nothing to tell."""

from __future__ import annotations

import math

import numpy as np
import pytest

from initrate.measure import Moments, moments


@pytest.mark.parametrize("block", [1, 7, 100, 10**6])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_equal_to_numpy(block: int, dtype: type):
    values = np.random.default_rng(1).normal(0.3, 2.0, size=(13, 17)).astype(dtype)
    found, exact = moments(values, block=block), values.astype(np.float64)
    assert found.size == values.size
    assert found.mean == pytest.approx(exact.mean(), rel=1e-12)
    assert found.std == pytest.approx(math.sqrt((exact**2).mean()), rel=1e-12)
    assert found.largest == np.abs(exact).max()
    assert (found.lowest, found.highest) == (exact.min(), exact.max())


def test_float32_is_summed_in_float64():
    values = np.full(10**6, 0.1, dtype=np.float32)
    assert moments(values).mean == pytest.approx(float(np.float32(0.1)), rel=1e-12)


def test_the_moments_of_parts_add_up():
    values = np.random.default_rng(2).normal(size=1000)
    whole, parts = moments(values), moments(values[:300]) + moments(values[300:])
    assert (whole.size, whole.lowest, whole.highest) == (parts.size, parts.lowest, parts.highest)
    assert whole.std == pytest.approx(parts.std, rel=1e-12)


def test_of_nothing():
    found = moments(np.zeros((0, 4)))
    assert found.size == 0
    assert math.isnan(found.std) and math.isnan(found.mean)


def test_of_one_value():
    found = moments(np.array(-2.0))
    assert (found.size, found.std, found.largest, found.constant) == (1, 2.0, 2.0, True)


@pytest.mark.parametrize(("values", "constant"), [([1, 1], True), ([1, 2], False)])
def test_constant(values: list[float], constant: bool):
    assert moments(np.array(values, dtype=np.float64)).constant is constant


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e200])
@pytest.mark.parametrize("place", [0, 5, 9])
def test_what_is_not_finite(bad: float, place: int):
    values = np.ones(10)
    values[place] = bad
    found = moments(values, block=4)
    assert not found.finite and not found.constant
    assert moments(np.ones(10)).finite


def test_both_infinities():
    assert not moments(np.array([math.inf, -math.inf])).finite


def test_moments_are_plain_values():
    assert Moments(1, 2.0, 4.0, 2.0, 2.0) == moments(np.array([2.0]))

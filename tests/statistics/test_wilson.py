"""The Wilson interval: known numbers, its defining equation, its coverage, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm

from initrate.errors import InputError
from initrate.statistics import wilson


# Newcombe (1998), Statistics in Medicine 17, table I: method 3, level 0.95.
@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_published_numbers(k: int, n: int, low: float, high: float) -> None:
    assert wilson(k, n) == pytest.approx((low, high), abs=5e-5)


@given(n=st.integers(1, 10**6), part=st.floats(0, 1), level=st.floats(0.01, 0.999))
def test_agrees_with_scipy(n: int, part: float, level: float) -> None:
    k = round(part * n)
    expected = binomtest(k, n).proportion_ci(confidence_level=level, method="wilson")
    assert wilson(k, n, level) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(n=st.integers(2, 10**4), part=st.floats(0.01, 0.99))
def test_the_bounds_solve_the_equation_they_are_defined_by(n: int, part: float) -> None:
    k = min(max(round(part * n), 1), n - 1)
    for bound in wilson(k, n, 0.95):
        standard_error = math.sqrt(bound * (1 - bound) / n)
        assert abs(k / n - bound) == pytest.approx(norm.ppf(0.975) * standard_error, rel=1e-6)


@given(n=st.integers(1, 10**6), part=st.floats(0, 1))
def test_order_and_mirror(n: int, part: float) -> None:
    k = round(part * n)
    low, high = wilson(k, n)
    assert 0 <= low <= k / n <= high <= 1
    assert (1 - high, 1 - low) == pytest.approx(wilson(n - k, n), abs=1e-12)
    assert wilson(k, n, 0.5)[0] >= low


def test_ends_are_exact() -> None:
    assert wilson(0, 7)[0] == 0.0 and wilson(7, 7)[1] == 1.0
    assert wilson(0, 0) == (0.0, 1.0)


def test_coverage_in_a_simulation() -> None:
    generator = np.random.default_rng(0)
    n_repeats = 4000
    for share in (0.1, 0.5, 0.9):
        counts = generator.binomial(100, share, size=n_repeats)
        covered = sum(low <= share <= high for low, high in (wilson(int(k), 100) for k in counts))
        # The interval is approximate: its coverage at n 100 lies within two hundredths of 0.95,
        # and the simulation adds five standard errors.
        error = 5 * math.sqrt(0.95 * 0.05 / n_repeats)
        assert abs(covered / n_repeats - 0.95) < 0.02 + error


@pytest.mark.parametrize(("k", "n"), [(-1, 5), (6, 5), (1, 0), (0, -1)])
def test_bad_counts(k: int, n: int) -> None:
    with pytest.raises(InputError, match="expected 0 <= successes <= trials"):
        wilson(k, n)


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, math.nan, True, "0.95"])
def test_bad_levels(level: object) -> None:
    with pytest.raises(InputError, match=r"level is .*: expected a number between 0 and 1"):
        wilson(1, 2, level)  # pyright: ignore[reportArgumentType]

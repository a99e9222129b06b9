"""The formula, against the numbers of the paper and against bad input."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from initrate.errors import InputError
from initrate.rule import Rule, Uniform, Zero, gamma_from_std, std_from_gamma

PAPER = tomllib.loads((Path(__file__).parent / "paper_numbers.toml").read_text())
TABLE = [
    (int(d_in), gamma, text)
    for d_in, row in PAPER["std"].items()
    if d_in != "gamma"
    for gamma, text in zip(PAPER["std"]["gamma"], row, strict=True)
]


def half_a_digit(text: str) -> float:
    """Half of the last printed digit: how far a rounded number may be off."""
    return 0.5000001 * 10.0 ** -len(text.split(".")[1])


def test_the_table_is_whole() -> None:
    assert len(TABLE) == 7 * 7


@pytest.mark.parametrize(("d_in", "gamma", "text"), TABLE)
def test_std_is_the_papers(d_in: int, gamma: float, text: str) -> None:
    assert abs(std_from_gamma(gamma, d_in) - float(text)) <= half_a_digit(text)
    assert Rule(gamma=gamma).std("query", d_in=d_in) == std_from_gamma(gamma, d_in)


@pytest.mark.parametrize(("d_in", "text"), PAPER["gamma_of_std_002"].items())
def test_gamma_of_a_fixed_std(d_in: str, text: str) -> None:
    assert abs(gamma_from_std(0.02, int(d_in)) - float(text)) <= half_a_digit(text)


@pytest.mark.parametrize(("d_in", "text"), PAPER["gamma_of_torch_linear"].items())
def test_gamma_of_torchs_default(d_in: str, text: str) -> None:
    std = Uniform(gamma=0.5).std_at(d_in=int(d_in))
    assert std == pytest.approx(1 / math.sqrt(3 * int(d_in)))
    assert abs(gamma_from_std(std, int(d_in)) - float(text)) <= half_a_digit(text)


@given(gamma=st.floats(-3, 5), d_in=st.integers(2, 10**6))
def test_gamma_and_std_are_inverse(gamma: float, d_in: int) -> None:
    assert gamma_from_std(std_from_gamma(gamma, d_in), d_in) == pytest.approx(gamma, abs=1e-9)


@given(d_in=st.integers(2, 10**6), gamma=st.floats(-2, 3), more=st.floats(0.01, 2))
def test_a_larger_gamma_is_a_smaller_std(d_in: int, gamma: float, more: float) -> None:
    assert std_from_gamma(gamma + more, d_in) < std_from_gamma(gamma, d_in)


def test_one_input_has_std_one_at_every_gamma() -> None:
    assert std_from_gamma(0.3, 1) == std_from_gamma(2.0, 1) == 1.0


def test_numpy_numbers_are_numbers() -> None:
    assert std_from_gamma(np.float64(0.5), int(np.int64(64))) == 0.125
    assert std_from_gamma(0.5, np.int64(64)) == 0.125  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "gamma", [math.nan, math.inf, -math.inf, "0.8", True, None, [0.8], 1j, 10**400]
)
def test_gamma_must_be_a_finite_number(gamma: object) -> None:
    with pytest.raises(InputError, match=r"gamma is .*: expected a finite number"):
        std_from_gamma(gamma, 64)  # pyright: ignore[reportArgumentType]
    if gamma is not None:
        with pytest.raises(InputError, match=r"rule gamma is .*: expected a finite number"):
            Rule(gamma=gamma)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("d_in", [0, -1, 64.0, True, "64", None])
def test_d_in_must_be_a_whole_number(d_in: object) -> None:
    with pytest.raises(InputError, match=r"d_in is .*: expected a whole number of at least 1"):
        std_from_gamma(0.5, d_in)  # pyright: ignore[reportArgumentType]


def test_gamma_of_one_input_is_not_defined() -> None:
    with pytest.raises(InputError, match="d_in is 1: expected a whole number of at least 2"):
        gamma_from_std(0.02, 1)


@pytest.mark.parametrize("std", [0.0, -0.1, math.nan, math.inf, "0.02", False])
def test_std_must_be_positive(std: object) -> None:
    with pytest.raises(InputError, match=r"std is .*: expected a"):
        gamma_from_std(std, 64)  # pyright: ignore[reportArgumentType]


def test_a_std_beyond_all_numbers_is_refused() -> None:
    with pytest.raises(InputError, match="no finite number; give a larger gamma"):
        std_from_gamma(-1000.0, 64)


def test_a_std_that_is_zero_as_a_float_is_refused() -> None:
    with pytest.raises(InputError, match="is 0; give a smaller gamma"):
        std_from_gamma(1e6, 64)
    with pytest.raises(InputError, match="is 0; give a smaller gamma"):
        Rule(gamma=1e6).std("query", d_in=64)
    with pytest.raises(InputError, match="too small"):
        Rule(gamma=179, residual="sqrt_2L").std("mlp_out", d_in=64, n_layers=10**6)
    assert Rule(gamma=1e6).std("query", d_in=1) == 1.0
    assert Rule(draws={"query": Zero()}).std("query", d_in=64) == 0.0

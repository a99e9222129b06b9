"""Ranges and lists of axes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initrate.errors import InputError
from initrate.study import axis_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.3:1.0:0.1", (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
        ("1e-4:3e-4:1e-4", (1e-4, 2e-4, 3e-4)),
        ("2:4:1", (2, 3, 4)),
        ("2:4", (2, 3, 4)),
        ("2:2", (2,)),
        ("0:1:0.5", (0.0, 0.5, 1.0)),
        ("-0.2:0.2:0.2", (-0.2, 0.0, 0.2)),
        ("0.3,0.5, 0.8", (0.3, 0.5, 0.8)),
        ("0.5", (0.5,)),
        ("true,false", (True, False)),
        ([0.5, 1], (0.5, 1)),
        (3, (3,)),
    ],
)
def test_values(text: object, values: tuple[object, ...]) -> None:
    found = axis_values(text)
    assert found == values
    assert [type(entry) for entry in found] == [type(entry) for entry in values]


@given(first=st.integers(-50, 50), n=st.integers(0, 60), step=st.integers(1, 40))
def test_a_range_ends_at_its_last_value(first: int, n: int, step: int) -> None:
    last = first + n * step
    found = axis_values(f"{first / 100}:{last / 100}:{step / 100}")
    assert found == tuple(round((first + k * step) / 100, 12) for k in range(n + 1))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("0.3:1.0:0.2", "miss 1.0"),
        ("0.3:1.0", "expected a step"),
        ("0.3:1.0:0", "above zero"),
        ("0.3:1.0:-0.1", "above zero"),
        ("1.0:0.3:0.1", "not above the last"),
        ("a:b:c", "first:last:step"),
        ("1:2:3:4", "first:last:step"),
        ("0:inf:1", "finite"),
        ("nan", "finite"),
        ("0:1:1e-9", "more than 10,000"),
        ("0.3,,0.5", "between the commas"),
        ("", "between the commas"),
        ([], "no values"),
        ([None], "numbers or words"),
        ([[0.5]], "numbers or words"),
        ([math.nan], "finite"),
        (None, "expected a range"),
        ({"a": 1}, "expected a range"),
    ],
)
def test_what_is_no_axis_is_one_line(given: object, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        axis_values(given, name="gamma")
    assert "gamma" in str(caught.value) and "\n" not in str(caught.value)

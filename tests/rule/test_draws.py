"""The five draws: their std, their plain form, bad input."""

from __future__ import annotations

import math

import pytest

from initrate.errors import InputError
from initrate.rule import Draw, Gamma, Keep, Std, Uniform, Zero, as_draw, draw_to_dict

DRAWS: list[tuple[Draw, float | None]] = [
    (Gamma(0.5), 0.1),
    (Gamma(1), 0.01),
    (Std(0.02), 0.02),
    (Uniform(bound=0.3), 0.3 / math.sqrt(3)),
    (Uniform(gamma=0.5), 0.1 / math.sqrt(3)),
    (Zero(), 0.0),
    (Keep(), None),
]


@pytest.mark.parametrize(("draw", "std"), DRAWS)
def test_std_at_a_hundred_inputs(draw: Draw, std: float | None) -> None:
    found = draw.std_at(d_in=100)
    assert found is None if std is None else found == pytest.approx(std, rel=1e-12)


@pytest.mark.parametrize("draw", [draw for draw, _ in DRAWS])
def test_plain_values_read_back(draw: Draw) -> None:
    assert as_draw(draw_to_dict(draw)) == draw
    assert as_draw(draw) is draw


def test_whole_numbers_become_floats_so_that_equal_rules_have_one_id() -> None:
    assert repr(Gamma(1)) == repr(Gamma(1.0)) == "Gamma(gamma=1.0)"
    assert repr(Gamma(-0.0)) == "Gamma(gamma=0.0)"


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"kind": "gama", "gamma": 0.5}, "unknown kind of draw 'gama': did you mean 'gamma'?"),
        ({"kind": 3}, "unknown kind of draw '3'"),
        ({"gamma": 0.5}, "draw is .*: expected Gamma, Std"),
        ({"kind": "gamma"}, "draw of kind 'gamma' lacks 'gamma'"),
        ({"kind": "std"}, "draw of kind 'std' lacks 'std'"),
        ({"kind": "std", "sdt": 0.02}, "unknown option of the draw 'std' 'sdt': did you mean"),
        ({"kind": "zero", "std": 1.0}, "unknown option of the draw 'zero' 'std'"),
        ({"kind": "uniform"}, "give one of the two"),
        ({"kind": "uniform", "bound": 1.0, "gamma": 0.5}, "give one of the two"),
        ({"kind": "uniform", "bound": -1.0}, "uniform bound is -1.0: expected a number above 0"),
        ({"kind": "uniform", "gamma": "x"}, "uniform gamma is 'x': expected a finite number"),
        ({"kind": "std", "std": 0}, "std is 0: expected a number above 0"),
        ({"kind": "gamma", "gamma": True}, "gamma is True: expected a finite number"),
        ("gamma", "draw is 'gamma': expected Gamma, Std"),
        (None, "draw is None: expected Gamma, Std"),
    ],
)
def test_bad_draws(plain: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        as_draw(plain)
    assert "\n" not in str(caught.value)

"""Draws: how the values of one tensor come about."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

from initrate.errors import InputError, unknown
from initrate.rule._checks import finite_number, positive_number
from initrate.rule._gamma import std_from_gamma


@dataclass(frozen=True, slots=True)
class Gamma:
    """Normal values with std d_in ** -gamma, not truncated.

    >>> Gamma(0.5).std_at(d_in=64)
    0.125
    """

    gamma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", finite_number("gamma", self.gamma))

    def std_at(self, *, d_in: int) -> float:
        """Return the std of the values."""
        return std_from_gamma(self.gamma, d_in)


@dataclass(frozen=True, slots=True)
class Std:
    """Normal values with a fixed std, whatever d_in is; not truncated.

    >>> Std(0.02).std_at(d_in=64)
    0.02
    """

    std: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "std", positive_number("std", self.std))

    def std_at(self, *, d_in: int) -> float:
        """Return the std of the values."""
        return self.std


@dataclass(frozen=True, slots=True)
class Uniform:
    """Values uniform between minus and plus a bound: a fixed one, or d_in ** -gamma.

    `Uniform(gamma=0.5)` is what torch draws for a linear map and its bias.

    >>> Uniform(gamma=0.5).bound_at(d_in=64)
    0.125
    >>> round(Uniform(bound=0.3).std_at(d_in=64), 4)
    0.1732
    """

    bound: float | None = None
    gamma: float | None = None

    def __post_init__(self) -> None:
        if (self.bound is None) == (self.gamma is None):
            raise InputError(
                f"Uniform has bound {self.bound!r} and gamma {self.gamma!r}: give one of the two"
            )
        if self.bound is not None:
            object.__setattr__(self, "bound", positive_number("uniform bound", self.bound))
        if self.gamma is not None:
            object.__setattr__(self, "gamma", finite_number("uniform gamma", self.gamma))

    def bound_at(self, *, d_in: int) -> float:
        """Return the largest absolute value."""
        if self.gamma is not None:
            return std_from_gamma(self.gamma, d_in)
        assert self.bound is not None
        return self.bound

    def std_at(self, *, d_in: int) -> float:
        """Return the std of the values: the bound divided by the root of three."""
        return self.bound_at(d_in=d_in) / math.sqrt(3)


@dataclass(frozen=True, slots=True)
class Zero:
    """All values are zero.

    >>> Zero().std_at(d_in=64)
    0.0
    """

    def std_at(self, *, d_in: int) -> float:
        """Return the std of the values: zero."""
        return 0.0


@dataclass(frozen=True, slots=True)
class Keep:
    """The values stay what the model made them.

    >>> Keep().std_at(d_in=64) is None
    True
    """

    def std_at(self, *, d_in: int) -> None:
        """Return None: the rule does not know the values."""
        return None


Draw = Gamma | Std | Uniform | Zero | Keep

_KINDS: dict[str, type[Gamma] | type[Std] | type[Uniform] | type[Zero] | type[Keep]] = {
    "gamma": Gamma,
    "std": Std,
    "uniform": Uniform,
    "zero": Zero,
    "keep": Keep,
}


def draw_to_dict(draw: Draw) -> dict[str, str | float]:
    """Return the draw as plain values, for TOML and JSON.

    >>> draw_to_dict(Std(0.02))
    {'kind': 'std', 'std': 0.02}
    """
    kind = next(kind for kind, made in _KINDS.items() if type(draw) is made)
    numbers = {f.name: getattr(draw, f.name) for f in fields(draw)}
    return {"kind": kind, **{name: x for name, x in numbers.items() if x is not None}}


def as_draw(found: object) -> Draw:
    """Return the draw that is given as itself or as plain values.

    >>> as_draw({"kind": "uniform", "gamma": 0.5})
    Uniform(bound=None, gamma=0.5)
    """
    if isinstance(found, Draw):
        return found
    if not isinstance(found, Mapping) or "kind" not in found:
        raise InputError(
            f"draw is {found!r}: expected Gamma, Std, Uniform, Zero or Keep, "
            'or a table such as { kind = "std", std = 0.02 }'
        )
    kind = found["kind"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise unknown("kind of draw", kind, _KINDS)
    made = _KINDS[kind]
    names = [f.name for f in fields(made)]
    numbers = {name: x for name, x in found.items() if name != "kind"}
    for name in numbers:
        if name not in names:
            raise unknown(f"option of the draw {kind!r}", name, names or ["none"])
    if made in (Gamma, Std) and not numbers:
        raise InputError(f"draw of kind {kind!r} lacks {names[0]!r}: give it a number")
    return made(**numbers)

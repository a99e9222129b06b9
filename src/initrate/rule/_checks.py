"""Checks of single numbers: what was found is said in one line."""

from __future__ import annotations

import math
from numbers import Integral, Real

from initrate.errors import InputError


def finite_number(name: str, found: object) -> float:
    """Return the number as a float; text, truth values, nan and infinity are errors.

    >>> finite_number("gamma", 1)
    1.0
    """
    if isinstance(found, bool) or not isinstance(found, Real):
        raise InputError(f"{name} is {found!r}: expected a finite number")
    try:
        number = float(found)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{name} is {number}: expected a finite number")
    # Adding zero makes -0.0 into 0.0, so that equal rules have equal text and equal ids.
    return number + 0.0


def positive_number(name: str, found: object) -> float:
    """Return the number as a float; it must be finite and above zero."""
    number = finite_number(name, found)
    if number <= 0:
        raise InputError(f"{name} is {found!r}: expected a number above 0")
    return number


def whole_number(name: str, found: object, *, least: int) -> int:
    """Return the number as an int; it must be whole and at least `least`.

    >>> whole_number("d_in", 64, least=1)
    64
    """
    if isinstance(found, bool) or not isinstance(found, Integral) or found < least:
        raise InputError(f"{name} is {found!r}: expected a whole number of at least {least}")
    return int(found)

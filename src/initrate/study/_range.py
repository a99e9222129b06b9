"""Values of an axis: ranges, lists and single values, as a user writes them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from initrate.errors import InputError

Value = int | float | str | bool

MOST_VALUES = 10_000
"""An axis longer than this is taken for a slip of the step."""


_LARGEST = 2**64
"""Whole numbers beyond this are no float's and no seed's."""


def axis_values(given: object, *, name: str = "axis") -> tuple[Value, ...]:
    """Return the values of an axis: `"a:b:step"` with b included, `"a,b,c"`, a list, or one value.

    Numbers of a range are rounded to 12 digits, so that 0.3:1.0:0.1 gives 0.6 and not
    0.6000000000000001; cells are named by their values.

    >>> axis_values("0.3:0.6:0.1")
    (0.3, 0.4, 0.5, 0.6)
    >>> axis_values("2:4:1"), axis_values("relu,gelu"), axis_values([1, 2])
    ((2, 3, 4), ('relu', 'gelu'), (1, 2))
    """
    if isinstance(given, str):
        values = _from_text(given, name=name)
    elif isinstance(given, bool | int | float):
        values = (_checked(given, name=name),)
    elif isinstance(given, Sequence) and not isinstance(given, bytes):
        values = tuple(_checked(entry, name=name) for entry in given)
    else:
        raise InputError(
            f"axis {name} is {given!r}: expected a range like '0.3:1.0:0.1', a list, or a value"
        )
    if not values:
        raise InputError(f"axis {name} has no values: expected at least one")
    return values


def _from_text(text: str, *, name: str) -> tuple[Value, ...]:
    if ":" in text:
        return _range(text, name=name)
    words = [word.strip() for word in text.split(",")]
    if any(not word for word in words):
        raise InputError(f"axis {name} is {text!r}: expected values between the commas")
    return tuple(_checked(value_of(word), name=name) for word in words)


def value_of(word: str) -> Value:
    """Return what a word says: a whole number, a number, true or false, or else the word itself.

    >>> value_of("3"), value_of("1e-3"), value_of("true"), value_of("relu")
    (3, 0.001, True, 'relu')
    """
    if word in ("true", "false"):
        return word == "true"
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def _range(text: str, *, name: str) -> tuple[Value, ...]:
    parts = [value_of(part.strip()) for part in text.split(":")]
    numbers = [p for p in parts if isinstance(p, int | float) and not isinstance(p, bool)]
    if len(numbers) != len(parts) or len(parts) not in (2, 3):
        raise InputError(f"axis {name} is {text!r}: expected first:last:step, as in 0.3:1.0:0.1")
    for number in numbers:
        _checked(number, name=name)
    whole = all(isinstance(number, int) for number in numbers)
    if len(numbers) == 2 and not whole:
        raise InputError(f"axis {name} is {text!r}: expected a step, as in {text}:0.1")
    first, last, step = (*numbers, 1)[:3]
    if step <= 0 or last < first:
        raise InputError(
            f"axis {name} is {text!r}: expected a first value not above the last, and a step "
            "above zero"
        )
    n_steps = (last - first) / step
    if n_steps >= MOST_VALUES:
        raise InputError(f"axis {name} is {text!r}: more than {MOST_VALUES:,} values")
    n_whole = round(n_steps)
    if abs(n_steps - n_whole) > 1e-6:
        end = round(first + math.floor(n_steps) * step, 12)
        raise InputError(
            f"axis {name} is {text!r}: the steps miss {last}; expected a last value they reach, "
            f"as in {first}:{end}:{step}"
        )
    if whole:
        return tuple(range(int(first), int(last) + 1, int(step)))
    return tuple(round(first + k * step, 12) for k in range(n_whole + 1))


def _checked(entry: object, *, name: str) -> Value:
    if not isinstance(entry, bool | int | float | str):
        raise InputError(f"axis {name} holds {entry!r}: expected numbers or words")
    if isinstance(entry, int) and abs(entry) > _LARGEST:
        raise InputError(f"axis {name} holds a number beyond all bounds: expected at most 2^64")
    if isinstance(entry, float) and not math.isfinite(entry):
        raise InputError(f"axis {name} holds {entry!r}: expected finite numbers")
    return entry

"""Which axes of a parameter the axes of a tensor are, from how the tensor lies in its storage.

A view has the storage of what it is a view of, so its strides tell which axes it has, whatever
operations made it: transposed, reshaped, split, selected, expanded. A storage that holds values
of a parameter is described once, by its fine axes; an axis of a view is then a row of digits,
each a part of one fine axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Digit:
    """A part of one axis of a tensor, from the outer to the inner one.

    >>> Digit(4, axis=0).share
    4
    """

    size: int
    axis: int | None
    """The axis of the parameter; None where the values are repeated, or gathered by an index."""
    gathered: bool = False
    start: int = 0
    own: int | None = None
    """How many of the places are the parameter's, of what is joined with others; None: all."""
    vague: bool = False
    """Some places are the parameter's, and which ones is not known."""

    @property
    def share(self) -> int:
        """How many places are the parameter's."""
        return self.size if self.own is None else self.own


@dataclass(frozen=True, slots=True)
class Fine:
    """One axis of a storage: its digit, and how far apart its places lie."""

    stride: int
    digit: Digit


@dataclass(frozen=True, slots=True)
class Origin:
    """The parameter that the values of a storage come from, and the axes of the storage."""

    parameter: int
    fines: tuple[Fine, ...]
    """From the largest stride to the smallest; axes of one place are left out."""
    through: tuple[str, ...] = ()
    """The operations that changed the values on the way."""
    gathered: tuple[int, ...] = ()
    """The axes along which an index picked places: rows of a table, or experts."""


Digits = tuple[tuple[Digit, ...], ...]
"""For each axis of a tensor its digits."""


def of_parameter(shape: Sequence[int], strides: Sequence[int]) -> tuple[Fine, ...]:
    """Return the fine axes of a parameter's own storage.

    >>> [fine.stride for fine in of_parameter((8, 4), (4, 1))]
    [4, 1]
    """
    return laid_out(tuple((Digit(size, axis),) for axis, size in enumerate(shape)), strides)


def laid_out(digits: Digits, strides: Sequence[int]) -> tuple[Fine, ...]:
    """Return the fine axes of a new storage whose tensor has these digits and strides."""
    fines = []
    for parts, stride in zip(digits, strides, strict=True):
        inner = 1
        for digit in reversed(parts):
            if digit.size > 1:
                fines.append(Fine(stride * inner, digit))
            inner *= digit.size
    return tuple(sorted(fines, key=lambda fine: -fine.stride))


def digits_of(
    fines: Sequence[Fine], shape: Sequence[int], strides: Sequence[int], offset: int
) -> Digits | None:
    """Return the digits of each axis of a view, or None where it has none of the parameter.

    Raises ValueError where the axes of the view are no parts of axes of the storage.

    >>> fines = of_parameter((8, 4), (4, 1))
    >>> digits = digits_of(fines, (4, 2, 4), (1, 16, 4), 0)  # view(2, 4, 4).permute(2, 0, 1)
    >>> [[(part.size, part.axis) for part in parts] for parts in digits]
    [[(4, 1)], [(2, 0)], [(4, 0)]]
    """
    starts = []
    for fine in fines:
        starts.append(offset // fine.stride)
        offset -= starts[-1] * fine.stride
    if offset:
        raise ValueError("the start lies between the axes")
    steps = [
        _steps(fines, side, stride) if side > 1 and stride else []
        for side, stride in zip(shape, strides, strict=True)
    ]
    reach = list(starts)
    for row in steps:
        for place, size, step in row:
            reach[place] += (size - 1) * step
    if any(end >= fine.digit.size for end, fine in zip(reach, fines, strict=True)):
        raise ValueError("the view runs over the end of an axis")
    touched = [place for row in steps for place, _, _ in row]
    for place, fine in enumerate(fines):
        # Of joined tensors, one that the view leaves out has no part in it.
        end = starts[place] + 1 if place not in touched else reach[place] + 1
        if _overlap(fine.digit, starts[place], end) == 0:
            return None
    return tuple(
        tuple(
            _part(fines[place].digit, size, step, starts[place], touched.count(place))
            for place, size, step in row
        )
        or (Digit(side, None),)
        for row, side in zip(steps, shape, strict=True)
    )


def _overlap(digit: Digit, start: int, end: int) -> int:
    return max(0, min(end, digit.start + digit.share) - max(start, digit.start))


def _steps(fines: Sequence[Fine], side: int, stride: int) -> list[tuple[int, int, int]]:
    """Return (place among the fine axes, size, step) of an axis, from the outer to the inner."""
    place = next((i for i, fine in enumerate(fines) if fine.stride <= stride), None)
    if place is None or stride % fines[place].stride:
        raise ValueError("a stride lies between the axes")
    step, found = stride // fines[place].stride, []
    while True:
        size = fines[place].digit.size
        if (side - 1) * step < size:
            return [(place, side, step), *found]
        whole = size // step if step <= size and size % step == 0 else 0
        outer = place - 1
        if not whole or side % whole or outer < 0:
            raise ValueError("an axis holds a part of another")
        if fines[outer].stride != fines[place].stride * size:
            raise ValueError("an axis leaps over others")
        if whole > 1:
            found.insert(0, (place, whole, step))
        side, step, place = side // whole, 1, outer


def _part(digit: Digit, size: int, step: int, start: int, views: int) -> Digit:
    """Return what a part of a fine axis is."""
    if digit.own is None or digit.own == digit.size:
        return Digit(size, digit.axis, digit.gathered, vague=digit.vague)
    if views > 1 or step > 1:
        return Digit(size, digit.axis, digit.gathered, vague=True)
    own = _overlap(digit, start, start + size)
    first = max(0, digit.start - start)
    return Digit(size, digit.axis, digit.gathered, first, own, vague=digit.vague)


def broadcast(digits: Digits, shape: Sequence[int], onto: Sequence[int]) -> Digits:
    """Return the digits of a tensor that is broadcast onto a shape.

    >>> broadcast(((Digit(4, 0),),), (4,), (2, 4))[0]
    (Digit(size=2, axis=None, gathered=False, start=0, own=None, vague=False),)
    """
    missing = len(onto) - len(shape)
    wide = tuple((Digit(side, None),) for side in onto[:missing])
    same = tuple(
        parts if side == wanted else (Digit(wanted, None),)
        for parts, side, wanted in zip(digits, shape, onto[missing:], strict=True)
    )
    return wide + same


def joined(digits: Digits, axis: int, start: int, length: int) -> Digits:
    """Return the digits of a tensor after it is joined with others along an axis."""
    parts = digits[axis]
    own = math.prod(part.share for part in parts)
    axes = {part.axis for part in parts if part.size > 1}
    gathered = any(part.gathered for part in parts)
    vague = any(part.vague for part in parts) or len(axes) > 1
    whole = Digit(length, axes.pop() if len(axes) == 1 else None, gathered, start, own, vague)
    return (*digits[:axis], (whole,), *digits[axis + 1 :])

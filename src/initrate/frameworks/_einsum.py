"""The axes of a kernel from the equation that it stands in."""

from __future__ import annotations

from initrate.frameworks._layout import Axes
from initrate.frameworks._parameter import refused


def einsum_axes(equation: object) -> Axes:
    """Return the axes of the second operand of an equation.

    A letter of the kernel that the result lacks is contracted: an input. One that the first
    operand lacks is an output. One that both have counts copies, which share no inputs.

    >>> einsum_axes("abc,cde->abde").words, einsum_axes("bhi,hio->bho").words
    (('in', 'out', 'out'), ('copy', 'in', 'out'))
    """
    if not isinstance(equation, str):
        return refused("is the kernel of an equation that is given with each call")
    sides = equation.replace(" ", "").replace("...", "").split("->")
    operands = sides[0].split(",")
    if len(sides) != 2 or len(operands) != 2:
        return refused(f"is the kernel of {equation!r}: expected two operands and a result")
    inputs, kernel, result = operands[0], operands[1], sides[1]
    words: list[str] = []
    for letter in kernel:
        if (letter not in inputs and letter not in result) or kernel.count(letter) > 1:
            return refused(f"is summed over {letter!r} by itself in {equation!r}")
        words.append("in" if letter not in result else "out" if letter not in inputs else "copy")
    if "in" not in words:
        return refused(f"is contracted over no axis in {equation!r}")
    return Axes(tuple(words))

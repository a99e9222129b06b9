"""A part of a fused tensor: blocks along one axis, at equal distances."""

from __future__ import annotations

from dataclasses import dataclass

from initrate.errors import InputError
from initrate.rule._checks import whole_number


@dataclass(frozen=True, slots=True)
class Slice:
    """Blocks of `length` along `axis`: the first at `start`, a further one every `period`.

    With no period there is one block. The query of a fused map that is interleaved by head, with
    heads of 64, is `Slice(axis=0, start=0, length=64, period=192)`.

    >>> Slice(axis=0, start=0, length=64, period=192).shape((1536, 512))
    (8, 64, 512)
    """

    axis: int
    start: int
    length: int
    period: int | None = None

    def __post_init__(self) -> None:
        whole_number("slice axis", self.axis, least=0)
        whole_number("slice start", self.start, least=0)
        whole_number("slice length", self.length, least=1)
        end = self.start + self.length
        if self.period is not None and whole_number("slice period", self.period, least=1) < end:
            raise InputError(
                f"slice period is {self.period}: expected at least start + length, which is {end}"
            )

    def split(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the tensor with the axis split into periods, and what a period has.

        >>> Slice(axis=1, start=0, length=2, period=6).split((4, 12))
        (4, 2, 6)
        """
        if self.axis >= len(shape):
            raise InputError(f"slice axis is {self.axis}: the tensor has the shape {shape}")
        side, period = shape[self.axis], self.period or shape[self.axis]
        if self.start + self.length > side or side % period:
            raise InputError(
                f"slice {self} does not fit the tensor: its side {self.axis} is {side}"
            )
        return (*shape[: self.axis], side // period, period, *shape[self.axis + 1 :])

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the part, as it is cut out of a tensor of this shape.

        >>> Slice(axis=1, start=4, length=4).shape((3, 12))
        (3, 1, 4)
        """
        parts = self.split(shape)
        return (*parts[: self.axis + 1], self.length, *parts[self.axis + 2 :])

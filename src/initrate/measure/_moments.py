"""Moments of a tensor, gathered block by block so that no copy of it is made."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over the values of a tensor; two of them add up to those of both.

    >>> ones = moments(np.ones(3))
    >>> (ones + ones).size, (ones + ones).std
    (6, 1.0)
    """

    size: int
    total: float
    squares: float
    lowest: float
    highest: float

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.size + other.size,
            self.total + other.total,
            self.squares + other.squares,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
        )

    @property
    def mean(self) -> float:
        """The mean, or nan of nothing."""
        return self.total / self.size if self.size else math.nan

    @property
    def std(self) -> float:
        """The root of the mean square: draws have the mean zero by rule."""
        return math.sqrt(self.squares / self.size) if self.size else math.nan

    @property
    def largest(self) -> float:
        """The largest absolute value."""
        return max(abs(self.lowest), abs(self.highest))

    @property
    def constant(self) -> bool:
        """Whether all values are one, and that a number."""
        return self.lowest == self.highest and self.finite

    @property
    def finite(self) -> bool:
        """Whether no value is infinite or nan."""
        return math.isfinite(self.total) and math.isfinite(self.squares)


NOTHING = Moments(0, 0.0, 0.0, math.inf, -math.inf)


def moments(values: NDArray[np.floating], *, block: int = 1 << 16) -> Moments:
    """Return the moments of an array, summed in float64 in blocks of one size.

    >>> found = moments(np.array([3.0, -4.0]))
    >>> found.std, found.largest
    (3.5355339059327378, 4.0)
    """
    flat = values.reshape(-1)
    found = NOTHING
    for start in range(0, flat.size, block):
        part = flat[start : start + block]
        # What is not finite is told by the sums themselves.
        with np.errstate(over="ignore", invalid="ignore"):
            found += Moments(
                part.size,
                float(part.sum(dtype=np.float64)),
                # Not `part @ part`: threads that a library starts for so little only wait.
                float(np.einsum("i,i->", part, part, dtype=np.float64, casting="same_kind")),
                float(part.min()),
                float(part.max()),
            )
    return found

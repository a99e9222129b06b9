"""What a trace says: the uses of every parameter of a model in one forward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from initrate.errors import InputError

Kind = Literal["contraction", "table", "elementwise", "lost"]


@dataclass(frozen=True, slots=True)
class Use:
    """One way in which operations use a parameter.

    >>> Use("contraction", "mm", axes=(1,), d_in=64, kept=(0,)).kind
    'contraction'
    """

    kind: Kind
    """`contraction`: a product adds it up along `axes`; `table`: an index picks places along
    `axes`; `elementwise`: it acts place by place; `lost`: what the operation does with its axes
    is not understood."""
    operation: str
    axes: tuple[int, ...] = ()
    d_in: int | None = None
    """How many inputs one output adds up; of a table the width of what is picked."""
    kept: tuple[int, ...] = ()
    """The axes that the result keeps."""
    through: tuple[str, ...] = ()
    """The operations that changed the values on the way from the parameter."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The uses of every parameter in one forward, under each of its names.

    >>> trace = Trace({"w": (8, 64)}, {"w": (Use("contraction", "mm", (1,), 64, (0,)),)})
    >>> trace.d_in("w"), trace.uncovered
    (64, ())
    """

    shapes: Mapping[str, tuple[int, ...]]
    uses: Mapping[str, tuple[Use, ...]]
    values: bool = False
    """Whether the forward ran with real values, since it could not run without them."""

    def of(self, name: str) -> tuple[Use, ...]:
        """Return the uses of a parameter, in the order in which they came."""
        if name not in self.uses:
            raise InputError(f"trace has no parameter {name!r}: expected a name such as the plan's")
        return self.uses[name]

    def d_in(self, name: str) -> int | None:
        """Return how many inputs one output adds up, where all uses agree; of a table its width.

        None where no operation added it up, where two operations disagree, or where an operation
        that is not understood used it.
        """
        found = self.of(name)
        if any(use.kind == "lost" for use in found):
            return None
        sizes = {use.d_in for use in found if use.kind in ("contraction", "table")}
        return sizes.pop() if len(sizes) == 1 else None

    @property
    def uncovered(self) -> tuple[str, ...]:
        """The parameters that no operation used, such as experts that no token went to."""
        return tuple(name for name, found in self.uses.items() if not found)

    def describe(self, name: str) -> str:
        """Return what the forward did with a parameter, for people.

        >>> use = Use("contraction", "mm", (1,), 64, (0,))
        >>> Trace({"w": (8, 64)}, {"w": (use,)}).describe("w")
        'contracts 64 along axis 1 (mm)'
        """
        return (
            "; ".join(dict.fromkeys(_sentence(use) for use in self.of(name))) or "does not use it"
        )


def _sentence(use: Use) -> str:
    axes = "axis " if len(use.axes) == 1 else "axes "
    axes += ", ".join(map(str, use.axes))
    through = f" after {', '.join(use.through)}" if use.through else ""
    if use.kind == "contraction":
        return f"contracts {use.d_in} along {axes} ({use.operation}){through}"
    if use.kind == "table":
        return f"looks up places of {axes} ({use.operation}){through}"
    if use.kind == "elementwise":
        return f"uses it place by place ({use.operation}){through}"
    return f"loses it in {use.operation}{through}"

"""The uses of parameters, as one operation after another adds to them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from initrate.frameworks.torch._trace_axes import Digit
from initrate.frameworks.torch._trace_operations import Product
from initrate.frameworks.torch._trace_storages import Seen
from initrate.frameworks.torch._trace_use import Use


class Record:
    """The uses of every parameter, by its place, in the order in which they came."""

    def __init__(self, shapes: Sequence[tuple[int, ...]]) -> None:
        self.uses: list[dict[Use, None]] = [{} for _ in shapes]
        self._shapes = shapes

    def add(self, seen: Seen, use: Use) -> None:
        """Add a use."""
        self.uses[seen.parameter][replace(use, through=seen.origin.through)] = None

    def lose(self, seen: Seen, name: str) -> None:
        """Add that an operation was not understood."""
        self.add(seen, Use("lost", name))

    def by_place(self, seen: Seen, name: str) -> None:
        """Add that an operation used the values place by place, or looked them up before."""
        if seen.origin.gathered:
            self.table(seen, name)
        else:
            kept = axes_of(seen.digits or ())
            self.add(seen, Use("elementwise", name, kept, kept=kept))

    def table(self, seen: Seen, name: str) -> None:
        """Add that places were looked up."""
        if seen.digits is None:
            self.lose(seen, name)
            return
        rows = seen.origin.gathered
        if not rows:
            rows = axes_of(seen.digits[:1])
        kept = tuple(axis for axis in axes_of(seen.digits) if axis not in rows)
        shape = self._shapes[seen.parameter]
        width = math.prod(side for axis, side in enumerate(shape) if axis not in rows)
        self.add(seen, Use("table", name, rows, width, kept))

    def product(self, seen: Seen, product: Product, name: str) -> bool:
        """Add a product; return whether it adds up only a part of the parameter's inputs."""
        if seen.digits is None:
            self.lose(seen, name)
            return False
        added = [part for axis in product.contracted for part in seen.digits[axis]]
        added = [part for part in added if part.size > 1]
        others = [
            parts
            for axis, parts in enumerate(seen.digits)
            if axis not in product.contracted and axis not in product.copies
        ]
        kept = axes_of(others)
        clear = all(part.axis is not None and not part.vague for part in added)
        if added and not any(part.axis is not None for part in added) and not seen.origin.gathered:
            self.add(seen, Use("elementwise", name, kept, kept=kept))
            return False
        if not clear or any(part.gathered for part in added):
            self.lose(seen, name)
            return False
        places = math.prod(part.share for part in added)
        d_in = max(1, places // product.divisor)
        axes = tuple(sorted({part.axis for part in added if part.axis is not None}))
        self.add(seen, Use("contraction", name, axes, d_in, kept))
        whole = math.prod(self._shapes[seen.parameter][axis] for axis in axes)
        return places < whole


def axes_of(digits: Iterable[tuple[Digit, ...]]) -> tuple[int, ...]:
    """Return the axes of the parameter that the digits are of."""
    found = {part.axis for parts in digits for part in parts if part.size > 1}
    return tuple(sorted(axis for axis in found if axis is not None))

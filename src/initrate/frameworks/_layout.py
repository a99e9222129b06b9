"""Layouts: which axes of a parameter are inputs, and what its parts are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from initrate.errors import InputError, unknown
from initrate.rule import DENSE_ROLES, Slice
from initrate.rule._roles import check_role

AXES = ("out", "in", "kernel", "copy", "row", "width")
"""Words for axes: outputs; inputs; places that one output adds up; independent copies of a map,
such as experts; rows of a table; and the width of a row."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a fused parameter and the roles it may have."""

    roles: tuple[str, ...]
    where: Slice | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Axes:
    """What a parameter is: a word for each axis, and its parts.

    >>> Axes(("out", "in"), parts=(Part(("query",)),)).d_in((8, 64))
    64
    """

    words: tuple[str, ...] = ()
    parts: tuple[Part, ...] = (Part(DENSE_ROLES),)
    keep: str = ""
    zero: str = ""
    refuse: str = ""
    divide_d_in: int = 1
    """What the product of the inputs is divided by: of a transposed convolution its stride."""

    def _product(self, shape: Sequence[int], *words: str) -> int | None:
        sides = [side for side, word in zip(shape, self.words, strict=True) if word in words]
        return math.prod(sides) if sides else None

    def d_in(self, shape: Sequence[int]) -> int | None:
        """Return how many inputs one output adds up, or the width of a table's row."""
        if not self.words:
            return None
        if "width" in self.words:
            return self._product(shape, "width")
        found = self._product(shape, "in", "kernel")
        return None if found is None else max(1, found // self.divide_d_in)

    def left_over(self, shape: Sequence[int]) -> str:
        """Return why the parts are not the whole of a parameter, or nothing where they are.

        >>> halves = tuple(Part((), Slice(axis=0, start=k, length=1)) for k in (0, 1))
        >>> Axes(("out", "in"), parts=halves).left_over((3, 4))
        'has 3 places along axis 0, of which its parts are 2'
        """
        slices = [part.where for part in self.parts if part.where is not None]
        if not slices or len(slices) < len(self.parts):
            return ""
        axis = slices[0].axis
        if axis >= len(shape) or any(where.axis != axis for where in slices):
            return ""
        period = slices[0].period or shape[axis]
        covered = sum(where.length for where in slices)
        if covered == period and shape[axis] % period == 0:
            return ""
        what = f"{shape[axis]} places along axis {axis}"
        return f"has {what}, of which its parts are {covered}"

    def d_out(self, shape: Sequence[int]) -> int | None:
        """Return how many outputs one input feeds."""
        return self._product(shape, "out") if self.words else None

    def rows(self, shape: Sequence[int]) -> int | None:
        """Return how many rows a table has."""
        if "width" not in self.words:
            return None
        return self._product(shape, "row") or 1


@dataclass(frozen=True, slots=True, init=False)
class Layout:
    """What the parameters of a user's own module are: a word for each axis of each of them.

    The words are `out`, `in`, `kernel` (places that one output adds up), `copy` (independent
    maps, such as experts), and of a table `row` and `width`. Of a table the role is
    `token_embedding` unless it is said. In place of axes, "norm", "bias" or "keep" says that a
    parameter is one, or is kept. The same can stand on the class, as
    `initrate_layout = {"weight": ("out", "in")}`. In place of a class, a pattern such as `*.qkv`
    means modules by their path. `parts` are roles that lie one after another in equal parts of
    the outputs: `Layout("*.qkv", weight=("out", "in"), parts=("query", "key", "value"))`.

    >>> layout = Layout("MyLinear", weight=("out", "in"), role="mlp_in")
    >>> layout.axes["weight"].d_in((256, 64))
    64
    """

    module: type | str
    """The class, its name, or a pattern of paths."""
    axes: Mapping[str, Axes] = field(default_factory=dict)
    parts: tuple[str, ...] = ()

    def __init__(
        self,
        module: type | str,
        *,
        role: str | None = None,
        parts: Sequence[str] = (),
        **parameters: Sequence[str] | str,
    ) -> None:
        if not isinstance(module, type | str):
            raise InputError(f"layout of {module!r}: expected a class or its name")
        name = module if isinstance(module, str) else module.__name__
        if not parameters:
            raise InputError(f"layout of {name!r} names no parameter: weight=('out', 'in'), say")
        axes = {key: _axes(name, key, words, role) for key, words in parameters.items()}
        if not isinstance(parts, list | tuple) or (parts and role is not None):
            raise InputError(f"layout of {name!r}: parts is {parts!r}: expected roles, and no role")
        for part in parts:
            check_role(part)
        if len(set(parts)) < len(parts):
            raise InputError(f"layout of {name!r}: parts {tuple(parts)} name a role twice")
        object.__setattr__(self, "parts", tuple(parts))
        object.__setattr__(self, "module", module)
        object.__setattr__(self, "axes", axes)

    @property
    def name(self) -> str:
        """The name of the class, or the pattern of paths."""
        return self.module if isinstance(self.module, str) else self.module.__name__

    def means(self, path: str) -> bool:
        """Return whether the layout is of the modules at paths like this one, as in `*.qkv`."""
        # "*.qkv" means an outermost one too.
        paths = (path, f".{path}")
        return isinstance(self.module, str) and any(fnmatchcase(p, self.module) for p in paths)

    def axes_at(self, parameter: str, shape: tuple[int, ...]) -> Axes:
        """Return what a parameter of this shape is; its outputs are cut into the layout's parts."""
        axes = self.axes[parameter]
        if not self.parts or "out" not in axes.words or len(axes.words) != len(shape):
            return axes
        axis, n = axes.words.index("out"), len(self.parts)
        if shape[axis] % n:
            raise InputError(
                f"layout of {self.name!r}: {parameter!r} has {shape[axis]} outputs, which are not "
                f"{n} equal parts ({', '.join(self.parts)})"
            )
        length = shape[axis] // n
        parts = tuple(
            Part((role,), Slice(axis=axis, start=k * length, length=length), role)
            for k, role in enumerate(self.parts)
        )
        return replace(axes, parts=parts)

    def fits(self, module_class: type) -> bool:
        """Return whether the class is the layout's, or is derived from it."""
        if isinstance(self.module, str):
            return any(base.__name__ == self.module for base in module_class.__mro__)
        return issubclass(module_class, self.module)


def _axes(name: str, key: str, words: Sequence[str] | str, role: str | None) -> Axes:
    """Return what the words of a layout say of one parameter."""
    if not isinstance(words, str | list | tuple):
        raise InputError(f"layout of {name!r}: {key!r} is {words!r}: expected axes, ('out', 'in')")
    if isinstance(words, str):
        if words in ("keep", "norm", "bias"):
            roles = {"keep": ("structured",), "norm": ("norm",), "bias": ("bias",)}[words]
            return Axes(parts=(Part(roles),), keep="kept by its layout" if words == "keep" else "")
        raise unknown(
            f"word for {key!r} in the layout of {name!r}", words, ("keep", "norm", "bias")
        )
    words = tuple(words)
    for word in words:
        if word not in AXES:
            raise unknown(f"axis of {key!r} in the layout of {name!r}", word, AXES)
    table = "width" in words
    if not table and "in" not in words:
        raise InputError(f"layout of {name!r}: {key!r} has the axes {words}: none of them is 'in'")
    if not table and len(words) > 1 and not {"out", "copy"} & {*words}:
        raise InputError(f"layout of {name!r}: {key!r} has the axes {words}: none of them is 'out'")
    if role is not None:
        return Axes(words, parts=(Part((check_role(role),)),))
    return Axes(words, parts=(Part(("token_embedding",) if table else DENSE_ROLES),))


def layout_of_class(module_class: type) -> Layout | None:
    """Return what the attribute `initrate_layout` of a class says of its parameters, or None."""
    found = getattr(module_class, "initrate_layout", None)
    if found is None or isinstance(found, Layout):
        return found
    name = module_class.__name__
    if not isinstance(found, Mapping):
        raise InputError(
            f"initrate_layout of {name!r} is {found!r}: expected a mapping such as "
            "{'weight': ('out', 'in')}"
        )
    if not all(isinstance(key, str) for key in found):
        raise InputError(f"initrate_layout of {name!r} has keys that are no names")
    if not found.keys().isdisjoint(("module", "self")):
        raise InputError(f"initrate_layout of {name!r} has a key 'module' or 'self': rename it")
    return Layout(module_class, **found)

"""A parameter as an adapter finds it: its path, its owners, and what their classes say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from initrate.errors import InputError
from initrate.frameworks._layout import Axes, Layout, Part, layout_of_class
from initrate.frameworks._patterns import (
    chosen,
    patterns,
    refuse_idle,
    refuse_idle_layouts,
)
from initrate.frameworks._words import dense_roles, table_roles
from initrate.rule import DENSE_ROLES, EMBEDDING_ROLES, RESIDUAL_ROLES, WeightRecord

MADE_UP = "_"
"""Stands in for a name that a framework made up: the second Dense is no role."""

NORM = Axes(parts=(Part(("norm",)),))
BIAS = Axes(parts=(Part(("bias",)),))


@dataclass(frozen=True, slots=True)
class Known:
    """What a class says of one of its parameters: its axes, and its shape where it is known.

    A parameter with more axes than that was stacked by a transformation: the further axes are
    independent copies.
    """

    axes: Axes
    shape: tuple[int, ...] | None = None


Described = dict[str, Known]
"""A parameter's name in its module, and what it is."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter at one of its names, before it is known what it is.

    `owners` are the modules around it, one for each name of `path`; None where what holds the
    next name is no module.
    """

    path: tuple[str, ...]
    owners: tuple[object, ...]
    shape: tuple[int, ...]
    n_layers: int | None = None
    keep: str = ""
    refuse: str = ""
    said: tuple[str, ...] = ()
    """The path with a blank for each name that the framework made up, which tells no role."""

    @property
    def name(self) -> str:
        """The canonical name."""
        return ".".join(self.path)


def structured(reason: str) -> Known:
    """Return what a parameter is that is never drawn."""
    return Known(Axes(parts=(Part(("structured",)),), keep=reason))


def refused(reason: str) -> Axes:
    """Return what a parameter is that cannot be drawn."""
    return Axes(parts=(Part(()),), refuse=reason)


def check_layouts(layouts: Sequence[Layout]) -> None:
    """Raise the error for what is no layout."""
    listed = layouts if isinstance(layouts, list | tuple) else (layouts,)
    for layout in listed:
        if not isinstance(layout, Layout) or listed is not layouts:
            raise InputError(f"layouts has {layout!r}: expected [Layout('*/Dense_*', kernel=...)]")


def refuse_layouts_without_effect(
    layouts: Sequence[Layout], parameters: Sequence[Parameter]
) -> None:
    """Refuse a layout that fits no parameter at all: it is a slip."""

    def fits(layout: Layout) -> bool:
        return any(p.path[-1] in layout.axes and _fits(layout, p) for p in parameters)

    refuse_idle_layouts(layouts, fits, "*/Dense_*")


def axes_by_user(parameter: Parameter, layouts: Sequence[Layout]) -> Known | None:
    """Return what the user says of a parameter: by its class, by its path, or on its class.

    >>> layout = Layout("*/Dense_*", kernel=("in", "out"))
    >>> found = axes_by_user(Parameter(("Dense_0", "kernel"), (None, None), (4, 8)), [layout])
    >>> found.axes.words
    ('in', 'out')
    """
    owner, attribute = parameter.owners[-1], parameter.path[-1]
    own = None if owner is None else layout_of_class(type(owner))
    for layout in (*layouts, own):
        if layout is not None and attribute in layout.axes:
            if layout is own or _fits(layout, parameter):
                axes = layout.axes_at(attribute, parameter.shape)
                return Known(_checked(axes, parameter, layout.name))
    return None


def _fits(layout: Layout, parameter: Parameter) -> bool:
    owner, above = parameter.owners[-1], parameter.path[:-1]
    if owner is not None and layout.fits(type(owner)):
        return True
    # A path may be written with slashes or with dots, and "*/Dense_*" means the outermost too.
    return isinstance(layout.module, str) and any(
        fnmatchcase(mark.join(found), layout.module)
        for mark in ("/", ".")
        for found in (above, ("", *above))
    )


def _checked(axes: Axes, parameter: Parameter, layout: str) -> Axes:
    if axes.words and len(axes.words) != len(parameter.shape):
        raise InputError(
            f"layout of {layout!r}: {parameter.path[-1]!r} has {len(axes.words)} axes, and "
            f"{parameter.name!r} has the shape {parameter.shape}"
        )
    return axes


def fitted(known: Known, parameter: Parameter) -> Axes:
    """Return the axes with a word for each side of the parameter, or with why there is none.

    >>> linear = Known(Axes(("in", "out")), (4, 8))
    >>> fitted(linear, Parameter(("kernel",), (None,), (3, 4, 8))).words
    ('copy', 'in', 'out')
    """
    axes, shape = known.axes, parameter.shape
    if not axes.words or axes.refuse:
        return axes
    if len(axes.words) == len(shape) and known.shape in (None, shape):
        return axes
    expected = known.shape
    trouble = refused(f"has the shape {shape}, and its module says {expected or axes.words}")
    if expected is None or len(expected) != len(axes.words) or len(shape) <= len(expected):
        return trouble
    if any(part.where is not None for part in axes.parts):
        return trouble
    # Which of two equal sides is the copies' does not matter: the sides of a map stay the same.
    words: list[str] = []
    sides = list(zip(expected, axes.words, strict=True))
    for side in reversed(shape):
        if sides and sides[-1][0] == side:
            words.append(sides.pop()[1])
        else:
            words.append("copy")
    return trouble if sides else replace(axes, words=tuple(reversed(words)))


def with_roles(axes: Axes, parameter: Parameter, own_name: bool) -> Axes:
    """Return the axes with the roles that the place tells, where the module leaves them open.

    `own_name` says that the parameter's own name is that of the map, as in a module that holds
    several; else the map's name is that of its module.
    """
    classes = ["" if owner is None else type(owner).__name__ for owner in parameter.owners]
    path = parameter.said or parameter.path
    path = path if own_name else path[:-1]
    if [part.roles for part in axes.parts] == [DENSE_ROLES]:
        roles = dense_roles(path, classes[1 : len(path)])
        return replace(axes, parts=(replace(axes.parts[0], roles=roles),))
    if [part.roles for part in axes.parts] == [("token_embedding",)]:
        return replace(axes, parts=(replace(axes.parts[0], roles=table_roles(path)),))
    return axes


def gather(
    described: Sequence[tuple[Parameter, Axes, Mapping[str, float]]],
    aliases: Sequence[tuple[str, ...]],
    include: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
) -> list[tuple[WeightRecord, ...]]:
    """Return the records of each parameter; its axes, and eps of a norm, are given beside it."""
    included, excluded = patterns("include", include), patterns("exclude", exclude)
    names = [parameter.name for parameter, _, _ in described]
    names += [name for others in aliases for name in others]
    own = names[: len(described)]
    if len({*own}) < len(own):
        name = next(name for k, name in enumerate(own) if name in own[:k])
        raise InputError(f"two parameters go by the name {name!r}: rename one of their owners")
    refuse_idle("include", included, names)
    refuse_idle("exclude", excluded, names)
    weights = {parameter.path: (parameter, axes) for parameter, axes, _ in described}
    found: list[tuple[WeightRecord, ...]] = []
    for (parameter, axes, numbers), others in zip(described, aliases, strict=True):
        if not chosen(parameter.name, included, excluded):
            axes = replace(axes, keep="left out by include or exclude", refuse="")
        elif parameter.keep:
            axes = replace(axes, keep=axes.keep or parameter.keep, refuse="")
        elif parameter.refuse:
            axes = replace(axes, refuse=parameter.refuse)
        of, of_d_in = _weight_of_bias(parameter, axes, weights)
        found.append(
            tuple(
                _record(parameter, axes, part, others, of, of_d_in, numbers.get("eps"))
                for part in axes.parts
            )
        )
    return found


def _weight_of_bias(
    parameter: Parameter, axes: Axes, weights: Mapping[tuple[str, ...], tuple[Parameter, Axes]]
) -> tuple[str, int | None]:
    """Return the name of the weight that a bias is added to, and its d_in."""
    last = parameter.path[-1]
    if axes.parts[0].roles != ("bias",) or "bias" not in last:
        return "", None
    for word in ("kernel", "weight"):
        beside = weights.get((*parameter.path[:-1], last.replace("bias", word)))
        if beside is not None and beside[1].words:
            weight, found = beside
            # Of a fused weight, what a bias is beside is no one row.
            return ("" if found.parts[0].name else weight.name), found.d_in(weight.shape)
    return "", None


def _record(
    parameter: Parameter,
    axes: Axes,
    part: Part,
    aliases: tuple[str, ...],
    of: str,
    of_d_in: int | None,
    eps: float | None,
) -> WeightRecord:
    shape = parameter.shape
    d_in, d_out = (axes.d_in(shape), axes.d_out(shape)) if not axes.refuse else (None, None)
    d_in = of_d_in if part.roles == ("bias",) else d_in
    residual = set(part.roles) & set(RESIDUAL_ROLES)
    writes = bool(residual) and residual == set(part.roles)
    # The side of the residual stream is known where the map surely writes into it, or reads it.
    d_model = d_out if writes else None if residual and d_in != d_out else d_in
    return WeightRecord(
        name=parameter.name,
        shape=shape,
        roles=part.roles,
        d_in=d_in or None,
        d_out=d_out or None,
        d_model=d_model or None,
        rows=None if axes.refuse else axes.rows(shape) or None,
        # How many layers a stack has whose layers are copies in one tensor is not known.
        n_layers=parameter.n_layers if writes and "copy" not in axes.words else None,
        part=part.name,
        where=part.where,
        aliases=aliases,
        of=of,
        eps=eps if part.roles == ("norm",) else None,
        keep=axes.keep,
        zero=axes.zero,
        refuse=axes.refuse,
    )


def is_table(axes: Axes) -> bool:
    """Return whether a tensor is a table of embeddings: the name that tied weights go by."""
    return bool(axes.parts[0].roles) and axes.parts[0].roles[0] in EMBEDDING_ROLES

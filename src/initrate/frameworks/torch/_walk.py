"""The walk: every parameter of a torch model as records, once for each storage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from initrate.errors import InputError
from initrate.frameworks._layout import Axes, Layout, Part, layout_of_class
from initrate.frameworks._patterns import chosen, refuse_idle, refuse_idle_layouts
from initrate.frameworks._reading import reading
from initrate.frameworks._words import dense_roles, table_roles
from initrate.frameworks.torch._families import family_axes
from initrate.frameworks.torch._layers import count_layers
from initrate.frameworks.torch._memory import address
from initrate.frameworks.torch._modules import describe_module, norm_eps
from initrate.frameworks.torch._names import canonical_name, owner_paths, wrapper_prefix
from initrate.frameworks.torch._parametrized import Reparametrized, own_tensor, reparametrized
from initrate.frameworks.torch._raw import raw_axes
from initrate.frameworks.torch._special import quantized_class, special_axes
from initrate.frameworks.torch._trace_use import Trace
from initrate.frameworks.torch._traced import checked_axes, traced_axes
from initrate.rule import DENSE_ROLES, EMBEDDING_ROLES, RESIDUAL_ROLES, WeightRecord


@dataclass(frozen=True, slots=True)
class ModelTensor:
    """One tensor of a model: what it is, part by part, and where its values lie."""

    records: tuple[WeightRecord, ...]
    tensor: torch.Tensor
    owner: nn.Module
    attribute: str
    through: Reparametrized | None = None
    """How values reach it, where it is computed from other parameters."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A parameter at one of its names."""

    name: str
    tensor: torch.Tensor
    owners: tuple[nn.Module, ...]
    """From the model down to the module that holds it."""
    attribute: str
    through: Reparametrized | None
    based: bool
    """Whether it belongs to the base of an adapter."""

    @property
    def owner(self) -> nn.Module:
        return self.owners[-1]

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(self.name.split("."))


def walk(
    model: nn.Module,
    *,
    layouts: Sequence[Layout] = (),
    include: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    trace: Trace | None = None,
) -> list[ModelTensor]:
    """Return every parameter of the model, tied ones once, in the order of the modules."""
    if not isinstance(model, nn.Module):
        raise InputError(f"model is {type(model).__name__}: expected a torch.nn.Module")
    if isinstance(model, torch.jit.ScriptModule):
        raise InputError("model is a ScriptModule, whose parts are not known: take what it is of")
    with reading(model):
        return _walk(model, layouts, include, exclude, trace)


def _walk(
    model: nn.Module,
    layouts: Sequence[Layout],
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    trace: Trace | None,
) -> list[ModelTensor]:
    _refuse_unmade(model)
    if not isinstance(layouts, list | tuple):
        raise InputError(f"layouts is {layouts!r}: expected a list of Layout(...)")
    for layout in layouts:
        if not isinstance(layout, Layout):
            raise InputError(f"layouts has {layout!r}: expected Layout(MyModule, weight=(...))")
    storages: dict[object, list[_Place]] = {}
    for place in _places(model):
        if is_lazy(place.tensor):
            raise InputError(f"{place.name!r} has no shape yet: run the model once before")
        storages.setdefault(_storage(place.tensor), []).append(place)
    _refuse_overlaps(storages)
    everywhere = [place for places in storages.values() for place in places]
    names = [place.name for place in everywhere]
    refuse_idle("include", include, names)
    refuse_idle("exclude", exclude, names)
    refuse_idle_layouts(layouts, lambda x: any(_fits(x, place) for place in everywhere), "*.qkv")
    frozen = all(not place.tensor.requires_grad for places in storages.values() for place in places)
    return [
        _tensor(places, layouts, include, exclude, trace, everything_frozen=frozen)
        for places in storages.values()
    ]


def _refuse_unmade(model: nn.Module) -> None:
    """Refuse modules that were never set up, or that hold themselves: no walk of them ends."""
    stack: list[tuple[nn.Module, frozenset[int]]] = [(model, frozenset())]
    while stack:
        module, above = stack.pop()
        name = type(module).__name__
        if "_modules" not in vars(module):
            raise InputError(f"{name} was made without super().__init__(): call it there first")
        if id(module) in above:
            raise InputError(f"{name} holds itself, by way of its children: expected a tree")
        inside = above | {id(module)}
        stack += [(child, inside) for child in module._modules.values() if child is not None]


def _places(model: nn.Module) -> Iterator[_Place]:
    """Yield every parameter at every one of its names."""
    prefix = wrapper_prefix(model)
    modules = dict(model.named_modules(remove_duplicate=False))
    for path, module in modules.items():
        if path.rpartition(".")[2] == "parametrizations" or ".parametrizations." in f".{path}.":
            continue
        based = "base_layer" in path.split(".")
        through = reparametrized(module)
        hidden = {name for found in through.values() for name in found.hidden}
        owners = tuple(modules[above] for above in owner_paths(path, prefix=prefix))
        own: list[tuple[str, torch.Tensor]] = [
            (name, p) for name, p in module._parameters.items() if p is not None
        ]
        own += [(name, found.value()) for name, found in through.items()]
        for name, tensor in own:
            if name not in hidden:
                full = canonical_name(f"{path}.{name}" if path else name, prefix=prefix)
                yield _Place(full, tensor, owners, name, through.get(name), based)


def _storage(tensor: torch.Tensor) -> object:
    """Return what two names of the same values have in common."""
    if type(tensor) not in (nn.Parameter, torch.Tensor) or tensor.layout != torch.strided:
        return id(tensor)
    return (*address(tensor), tensor.dtype, tuple(tensor.shape), tensor.stride())


def _refuse_overlaps(storages: dict[object, list[_Place]]) -> None:
    """Refuse two parameters that share some values and are not the same."""
    spans: dict[object, list[tuple[int, int, str]]] = {}
    for key, places in storages.items():
        if isinstance(key, tuple):
            tensor = places[0].tensor
            where, start = address(tensor)
            reach = sum(
                (side - 1) * step for side, step in zip(tensor.shape, tensor.stride(), strict=True)
            )
            end = start + (reach + 1) * tensor.element_size()
            spans.setdefault(where, []).append((start, end, places[0].name))
    for found in spans.values():
        found.sort()
        for (_, end, first), (start, _, second) in pairwise(found):
            if start < end:
                raise InputError(
                    f"{first!r} and {second!r} are overlapping views of one storage: expected "
                    "parameters of their own, or two names of the same one"
                )


def _tensor(
    places: list[_Place],
    layouts: Sequence[Layout],
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    trace: Trace | None,
    *,
    everything_frozen: bool,
) -> ModelTensor:
    """Return one tensor with its records."""
    described = [(place, _read(place, layouts, trace)) for place in places]
    # A tied storage goes by the name under which it is an embedding.
    place, axes = next(
        (
            (p, a)
            for p, a in described
            if a.parts[0].roles and a.parts[0].roles[0] in EMBEDDING_ROLES
        ),
        described[0],
    )
    if not chosen(place.name, include, exclude):
        axes = replace(axes, keep="left out by include or exclude", refuse="")
    elif not place.based and quantized_class(place.owner, place.attribute):
        pass  # Its type needs no gradient: that it is frozen says nothing.
    elif not place.tensor.requires_grad and not everything_frozen and not axes.keep:
        axes = replace(axes, keep="frozen: requires_grad is False", refuse="")
    elif place.through is not None and place.through.refuse:
        axes = replace(axes, refuse=place.through.refuse)
    aliases = tuple(other.name for other, _ in described if other.name != place.name)
    shape = tuple(place.tensor.shape)
    records = tuple(_record(place, shape, axes, part, aliases) for part in axes.parts)
    return ModelTensor(records, place.tensor, place.owner, place.attribute, place.through)


def _record(
    place: _Place, shape: tuple[int, ...], axes: Axes, part: Part, aliases: tuple[str, ...]
) -> WeightRecord:
    d_in, d_out = axes.d_in(shape), axes.d_out(shape)
    of, eps = "", None
    if part.roles == ("bias",):
        weight = _weight_of_bias(place)
        if weight is not None:
            of, d_in = weight
    if part.roles == ("norm",):
        eps = norm_eps(place.owner)
    writes = bool(part.roles) and set(part.roles) <= set(RESIDUAL_ROLES)
    return WeightRecord(
        name=place.name,
        shape=shape,
        roles=part.roles,
        d_in=d_in or None,
        d_out=d_out or None,
        d_model=_d_model(part.roles, d_in, d_out),
        rows=axes.rows(shape) or None,
        n_layers=count_layers(place.owners, place.path) if writes else None,
        part=part.name,
        where=part.where,
        aliases=aliases,
        of=of,
        eps=eps,
        padding=_padding(place),
        keep=axes.keep,
        zero=axes.zero,
        refuse=axes.refuse,
    )


def _d_model(roles: tuple[str, ...], d_in: int | None, d_out: int | None) -> int | None:
    """Return the width of the residual stream, on the side of the map that the roles tell."""
    if not roles or d_in == d_out:
        return d_in or None
    writes = [role in RESIDUAL_ROLES for role in roles]
    if all(writes):
        return d_out or None
    # A map that may read the stream or write into it has it on one side or the other.
    return None if any(writes) else d_in or None


def _padding(place: _Place) -> int | None:
    """Return the row of a table that torch keeps at zero, or None."""
    if isinstance(place.owner, nn.Embedding | nn.EmbeddingBag) and place.attribute == "weight":
        # A table of the padding row alone has no draw at all to leave out of.
        row, n_rows = place.owner.padding_idx, place.tensor.shape[0]
        return row if isinstance(row, int) and 0 <= row < n_rows and n_rows > 1 else None
    return None


def _weight_of_bias(place: _Place) -> tuple[str, int | None] | None:
    """Return the name of the weight that a bias is added to, and its d_in."""
    name = place.attribute.replace("bias", "weight")
    if name == place.attribute:
        return None
    weight = own_tensor(place.owner, name)
    if weight is None:
        return None
    axes = describe_module(place.owner).get(name)
    if axes is None or not axes.words or len(axes.words) != weight.dim():
        return None
    stem = place.name.removesuffix(place.attribute)
    # Of a fused weight, what a bias is beside is no one row; its d_in is that of all of them.
    return ("" if axes.parts[0].name else stem + name), axes.d_in(tuple(weight.shape))


def _read(place: _Place, layouts: Sequence[Layout], trace: Trace | None) -> Axes:
    """Return what a parameter is by its layout, and what a trace adds to that."""
    shape = tuple(place.tensor.shape)
    axes = _describe(place, layouts)
    if axes is not None:
        if left_over := axes.left_over(shape):
            return Axes(parts=(Part(()),), refuse=left_over)
        return axes if trace is None else checked_axes(axes, trace, place.name, shape)
    found = None if trace is None else traced_axes(trace, place.name, shape)
    if found is not None:
        return _with_role(found, place)
    saw = (
        f"; the example {trace.describe(place.name)}" if trace and place.name in trace.uses else ""
    )
    return Axes(
        parts=(Part(()),),
        refuse=f"is a parameter of {type(place.owner).__name__}, whose layout is not known{saw}",
    )


def _describe(place: _Place, layouts: Sequence[Layout]) -> Axes | None:
    """Return what a parameter is: by the user's layouts, by its family, by its module, its name."""
    shape, owner, attribute = tuple(place.tensor.shape), place.owner, place.attribute
    found = _by_user(place, layouts)
    if found is not None:
        if found.words and len(found.words) != len(shape):
            raise InputError(
                f"layout of {type(owner).__name__!r}: {attribute!r} has {len(found.words)} axes, "
                f"and {place.name!r} has the shape {shape}"
            )
        return _with_role(found, place)
    found = special_axes(owner, attribute, place.path)
    if found is not None:
        return found
    for depth in range(1, min(4, len(place.owners)) + 1):
        path = ".".join(place.path[-depth:])
        found = family_axes(place.owners[-depth], path, shape)
        if found is not None:
            return _with_role(found, place)
    found = describe_module(owner).get(attribute)
    if found is None:
        found = raw_axes(owner, attribute, shape)
    if found is not None and found.words and len(found.words) != len(shape):
        kind = type(owner).__name__
        return Axes(
            parts=(Part(()),),
            refuse=f"has the shape {shape}, where a {kind} has {len(found.words)} axes",
        )
    return None if found is None else _with_role(found, place)


def _by_user(place: _Place, layouts: Sequence[Layout]) -> Axes | None:
    own = layout_of_class(type(place.owner))
    for layout in (*layouts, own):
        if layout is not None and (layout is own or _fits(layout, place)):
            if place.attribute in layout.axes:
                return layout.axes_at(place.attribute, tuple(place.tensor.shape))
    return None


def _fits(layout: Layout, place: _Place) -> bool:
    """Return whether a layout is of the module that holds a parameter, and names the parameter."""
    path = ".".join(place.path[:-1])
    return place.attribute in layout.axes and (layout.fits(type(place.owner)) or layout.means(path))


def _with_role(axes: Axes, place: _Place) -> Axes:
    """Return the axes with the roles that the place tells, where the module leaves them open."""
    if [part.roles for part in axes.parts] == [DENSE_ROLES]:
        own = place.attribute not in ("weight",)
        path = place.path if own else place.path[:-1]
        classes = [type(owner).__name__ for owner in place.owners]
        root = type(place.owners[0])
        roles = dense_roles(
            path,
            classes[1:] if own else classes[1:-1],
            root="" if isinstance(place.owners[0], nn.Linear) else root.__name__,
            heads=root.__module__.startswith("transformers."),
        )
        return replace(axes, parts=(replace(axes.parts[0], roles=roles),))
    if [part.roles for part in axes.parts] == [("token_embedding",)] and (
        place.attribute == "weight"
    ):
        return replace(axes, parts=(replace(axes.parts[0], roles=table_roles(place.path[:-1])),))
    return axes

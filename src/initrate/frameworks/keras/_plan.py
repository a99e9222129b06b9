"""The plan of a Keras model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from initrate.frameworks._arrays import SHORT
from initrate.frameworks._layout import Axes, Layout
from initrate.frameworks._parameter import (
    NORM,
    Known,
    Parameter,
    axes_by_user,
    check_layouts,
    fitted,
    gather,
    is_table,
    refuse_layouts_without_effect,
    refused,
    with_roles,
)
from initrate.frameworks._reading import reading
from initrate.frameworks.keras._classes import describe_layer, role_in, with_role
from initrate.frameworks.keras._walk import Place, walk
from initrate.rule import DENSE_ROLES, Plan, Rule, Unknown, WeightRecord, plan_records
from initrate.rule._choice import needed_rule

Patterns = str | Sequence[str]
_IS_NORM = re.compile(r"(norm|normalization|rms|^ln$)\w*$", re.IGNORECASE)
_NORM_WORDS = ("weight", "bias", "scale", "gain", "gamma", "beta")
_MAP_NAMES = ("kernel", "weight", "embeddings")


@dataclass(frozen=True, slots=True)
class LayerTensor:
    """One weight of a model: what it is, part by part, and the variable that holds it."""

    records: tuple[WeightRecord, ...]
    variable: Any

    @property
    def name(self) -> str:
        """The canonical name."""
        return self.records[0].name


def tensors_of(
    model: Any,
    *,
    layouts: Sequence[Layout] = (),
    include: Patterns = (),
    exclude: Patterns = (),
) -> list[LayerTensor]:
    """Return the weights of a model, shared ones once."""
    check_layouts(layouts)
    with reading(model):
        return _tensors_of(model, layouts, include, exclude)


def _tensors_of(
    model: Any, layouts: Sequence[Layout], include: Patterns, exclude: Patterns
) -> list[LayerTensor]:
    groups: dict[int, list[Place]] = {}
    for place in walk(model):
        groups.setdefault(id(place.variable), []).append(place)
    everywhere = [place.parameter for group in groups.values() for place in group]
    refuse_layouts_without_effect(layouts, everywhere)
    everything_frozen = all(not group[0].variable.trainable for group in groups.values())
    chosen: list[tuple[Parameter, Axes]] = []
    aliases: list[tuple[str, ...]] = []
    for group in groups.values():
        described = [(place.parameter, _describe(place.parameter, layouts)) for place in group]
        first, axes = next((pair for pair in described if is_table(pair[1])), described[0])
        variable = group[0].variable
        if not variable.trainable and not everything_frozen and not first.refuse:
            first = replace(first, keep="frozen: trainable is False")
        if variable.dtype not in SHORT and not first.refuse:
            first = replace(first, refuse=f"holds {variable.dtype}: draw it in a type of floats")
        chosen.append((first, axes))
        names = (parameter.name for parameter, _ in described)
        aliases.append(tuple(name for name in names if name != first.name))
    records = gather(
        [(parameter, axes, _eps(parameter.owners[-1])) for parameter, axes in chosen],
        aliases,
        include,
        exclude,
    )
    return [
        LayerTensor(rows, group[0].variable)
        for rows, group in zip(records, groups.values(), strict=True)
    ]


def _eps(layer: object) -> dict[str, float]:
    found = getattr(layer, "epsilon", None)
    return {"eps": found} if isinstance(found, float) else {}


def _describe(parameter: Parameter, layouts: Sequence[Layout]) -> Axes:
    """Return what a weight is: by the user's layouts, or by its layer."""
    layer, name = parameter.owners[-1], parameter.path[-1]
    known = axes_by_user(parameter, layouts)
    if known is not None:
        return with_roles(known.axes, parameter, name not in _MAP_NAMES)
    known = describe_layer(layer).get(name)
    if known is None and _is_own_norm(parameter):
        known = Known(NORM)
    if known is None:
        return refused(f"is a weight of {type(layer).__name__}, whose layout is not known")
    axes = fitted(known, parameter)
    if len(parameter.owners) > 1 and [part.roles for part in axes.parts] == [DENSE_ROLES]:
        axes = with_role(axes, role_in(parameter.owners[-2], parameter.path[-2]))
    return with_roles(axes, parameter, name == "reverse_embeddings")


def _is_own_norm(parameter: Parameter) -> bool:
    """Return whether this is a norm of the user's own, by the names of its class and weight."""
    named = any(_IS_NORM.search(base.__name__) for base in type(parameter.owners[-1]).__mro__)
    return named and parameter.path[-1] in _NORM_WORDS and len(parameter.shape) <= 1


def plan(
    model: Any,
    *,
    gamma: float | None = None,
    rule: Rule | str | None = None,
    gamma_by_role: Mapping[str, float] | None = None,
    unknown: Unknown = "refuse",
    layouts: Sequence[Layout] = (),
    include: Patterns = (),
    exclude: Patterns = (),
) -> Plan:
    """Return what a rule does with every weight of a built model; the model is not changed.

    Roles and axes come from the layers that own the weights, never from a shape. A weight of a
    layer that is not known is refused by name, or kept with `unknown="keep"`; it is taught by
    `Layout(MyLayer, w=("in", "out"))` or by the attribute `initrate_layout` of its class.

    >>> import keras
    >>> model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256)])
    >>> [(row.name, row.d_in, row.std) for row in plan(model, gamma=0.5) if row.action == "draw"]
    [('dense.kernel', 64, 0.125)]
    """
    chosen = needed_rule(gamma, rule, gamma_by_role)
    tensors = tensors_of(model, layouts=layouts, include=include, exclude=exclude)
    records = [record for tensor in tensors for record in tensor.records]
    return plan_records(records, chosen, unknown_tensors=unknown)

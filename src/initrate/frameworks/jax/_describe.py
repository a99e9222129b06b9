"""What a parameter is: by the user's layouts, by its module's class, or not known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from initrate.frameworks._layout import Axes, Layout, Part
from initrate.frameworks._parameter import (
    NORM,
    Known,
    Parameter,
    axes_by_user,
    fitted,
    refused,
    structured,
    with_roles,
)
from initrate.frameworks.jax import _equinox_classes as equinox
from initrate.frameworks.jax import _flax_classes as flax
from initrate.rule import DENSE_ROLES

_LIBRARIES = ("flax.nnx", "flax.linen", "equinox")
_CLASSES: dict[str, dict[str, flax.Describe]] = dict(
    zip(_LIBRARIES, (flax.NNX, flax.LINEN, equinox.EQUINOX), strict=True)
)
_CHILDREN: dict[str, dict[str, dict[str, str]]] = dict(
    zip(_LIBRARIES, (flax.CHILDREN, flax.CHILDREN, equinox.CHILDREN), strict=True)
)
NORMALIZED = ("SpectralNorm", "WeightNorm")
"""The classes that divide the weights of a layer by their norm."""
_IS_NORM = re.compile(r"(norm|rms|^ln$)\w*$", re.IGNORECASE)
_NORM_WORDS = {"weight", "bias", "scale", "gain", "gamma", "beta"}


def library_classes(owner: object) -> Iterator[tuple[str, str]]:
    """Yield (library, class) of the classes of Flax and Equinox that a module is derived from.

    No library is imported for it: what is not loaded has no modules.
    """
    for base in type(owner).__mro__ if owner is not None else ():
        for library in _LIBRARIES:
            if base.__module__ == library or base.__module__.startswith(f"{library}."):
                yield library, base.__name__


def describe(
    parameter: Parameter, layouts: Sequence[Layout], inner: tuple[int, ...] | None = None
) -> Axes:
    """Return what a parameter is.

    `inner` is the shape that its module made it with, where that is known from elsewhere.
    """
    known = axes_by_user(parameter, layouts)
    if known is not None:
        return with_roles(known.axes, parameter, _names_itself(parameter))
    known = _by_class(parameter)
    if known is None:
        owner = parameter.owners[-1]
        what = type(owner).__name__ if owner is not None else "a plain tree"
        return refused(f"is a leaf of {what}, whose layout is not known")
    if inner is not None:
        known = replace(known, shape=inner)
    axes = fitted(known, parameter)
    return _special(parameter, with_roles(_with_parent(axes, parameter), parameter, False))


def eps_of(owner: object) -> dict[str, float]:
    """Return what a norm adds to the variance, where it says so."""
    for word in ("epsilon", "eps"):
        found = getattr(owner, word, None)
        if isinstance(found, float):
            return {"eps": found}
    return {}


def normalized_by(name: str) -> str:
    """Return why a weight behind a norm of weights is refused."""
    return f"is normalized by {name}, which takes its size out again: draw without it"


def _names_itself(parameter: Parameter) -> bool:
    return parameter.path[-1] not in ("kernel", "weight", "embedding")


def _by_class(parameter: Parameter) -> Known | None:
    owner, attribute = parameter.owners[-1], parameter.path[-1]
    for library, name in library_classes(owner):
        if name in NORMALIZED:
            return structured(f"what {name} keeps beside the weights")
        found = _CLASSES[library].get(name)
        if found is not None:
            return found(owner).get(attribute)
    # A norm of the user's own: by the name of its class and of its parameters.
    named = owner is not None and any(
        _IS_NORM.search(base.__name__) for base in type(owner).__mro__
    )
    if named and attribute in _NORM_WORDS and len(parameter.shape) <= 1:
        return Known(NORM)
    return None


def _with_parent(axes: Axes, parameter: Parameter) -> Axes:
    """Return the axes with the role that the module above gives the map."""
    if [part.roles for part in axes.parts] != [DENSE_ROLES] or len(parameter.owners) < 2:
        return axes
    for library, name in library_classes(parameter.owners[-2]):
        if name in flax.CELLS:
            return replace(axes, parts=(Part(("linear",)),))
        role = _CHILDREN[library].get(name, {}).get(parameter.path[-2])
        if role is not None:
            return replace(axes, parts=(Part((role,)),))
    return axes


def _special(parameter: Parameter, axes: Axes) -> Axes:
    """Return the axes of what stands in an adapter, or behind a norm of its weights."""
    for depth, owner in enumerate(parameter.owners[:-1]):
        for _, name in library_classes(owner):
            if name in NORMALIZED and axes.words:
                return replace(axes, refuse=normalized_by(name))
            if name == "LoRA" and parameter.path[depth] == "base_module":
                return replace(axes, keep=flax.LORA_BASE)
    return axes

"""A leaf of a tree that may be drawn, and where its new values go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from initrate.errors import InputError
from initrate.frameworks._arrays import SHORT
from initrate.frameworks._parameter import Parameter

Arrays = jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf at one of its names."""

    parameter: Parameter
    array: Any
    key: object
    """What two names of the same values have in common."""
    target: object
    """Its place among the leaves of the tree, or the variable that holds it."""
    inner: tuple[int, ...] | None = None
    """The shape that its module made it with."""


def is_floating(leaf: object) -> bool:
    """Return whether a leaf is an array that training changes: of floats, or of complex numbers."""
    return isinstance(leaf, Arrays) and jnp.issubdtype(leaf.dtype, jnp.inexact)


def why_refused(array: Any) -> str:
    """Return why values of the array's type are not drawn, or nothing.

    >>> why_refused(np.zeros(2, np.complex64))
    'holds complex64: expected one of float16, bfloat16, float32, float64'
    """
    name = np.dtype(array.dtype).name
    return "" if name in SHORT else f"holds {name}: expected one of {', '.join(SHORT)}"


def check_values(name: str, array: Any) -> None:
    """Raise the error for an array whose values cannot be read here."""
    if isinstance(array, jax.ShapeDtypeStruct):
        raise InputError(
            f"{name!r} is a shape and has no values: make the arrays first, or take plan() alone"
        )
    if isinstance(array, Tracer):
        raise InputError(f"{name!r} is traced: call this outside of jax.jit, grad and vmap")
    if isinstance(array, jax.Array):
        if array.is_deleted():
            raise InputError(
                f"{name!r} was deleted, or donated to a jitted function: give the arrays that the "
                "function returned"
            )
        if not array.is_fully_addressable:
            raise InputError(
                f"{name!r} lies on several processes: draw before the arrays are spread over them"
            )


def like(old: Any, values: np.ndarray) -> Any:
    """Return the values as an array of the kind of the old one, where that one lies."""
    if not isinstance(old, jax.Array):
        return values if isinstance(old, np.ndarray) else values[()]
    if not old.committed:
        # An array that is committed to no device must not become one that is.
        with jax.default_device(next(iter(old.devices()))):
            return jax.device_put(values)
    return jax.device_put(values, old.sharding)


def once(leaves: Sequence[Leaf]) -> list[list[Leaf]]:
    """Return the leaves with those of the same values together, in their order."""
    groups: dict[object, list[Leaf]] = {}
    for leaf in leaves:
        groups.setdefault(leaf.key, []).append(leaf)
    return list(groups.values())

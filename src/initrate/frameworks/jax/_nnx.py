"""The walk over a module of Flax NNX: its variables, shared ones at all of their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from initrate.errors import InputError
from initrate.frameworks._parameter import Parameter
from initrate.frameworks.jax._describe import library_classes
from initrate.frameworks.jax._layers import count_in_lists
from initrate.frameworks.jax._leaf import Leaf, is_floating, why_refused


def is_nnx_module(tree: object) -> bool:
    """Return whether this is a module of Flax NNX."""
    return ("flax.nnx", "Module") in set(library_classes(tree))


def nnx_leaves(module: Any) -> list[Leaf]:
    """Return the parameters of a module, each at every one of its names."""
    found = list(_leaves(module, (), (), frozenset()))
    if not found:
        raise InputError(f"{type(module).__name__} holds no nnx.Param of floats: nothing to draw")
    return found


def _leaves(
    holder: Any, path: tuple[str, ...], owners: tuple[Any, ...], around: frozenset[int]
) -> Iterator[Leaf]:
    """Yield the parameters below a module; `around` are those it is in, which it may hold again."""
    from flax import nnx

    around = around | {id(holder)}
    for name, found in _children(holder):
        way, above = (*path, name), (*owners, holder)
        if isinstance(found, nnx.Param):
            leaf = _leaf(found, way, above)
            if leaf is not None:
                yield leaf
        elif id(found) not in around and _holds(found):
            yield from _leaves(found, way, above, around)


def _leaf(variable: Any, path: tuple[str, ...], owners: tuple[Any, ...]) -> Leaf | None:
    array = variable.get_value()
    if not is_floating(array):
        return None
    modules = tuple(o if is_nnx_module(o) else None for o in owners)
    parameter = Parameter(
        path,
        modules,
        tuple(array.shape),
        count_in_lists(owners, path),
        refuse=why_refused(array),
    )
    return Leaf(parameter, array, id(variable), variable)


def _holds(found: Any) -> bool:
    return isinstance(found, Mapping | list | tuple) or any(
        name in ("Module", "Pytree") for _, name in library_classes(found)
    )


def _children(holder: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a module, a list or a mapping holds, by name."""
    if isinstance(holder, Mapping):
        yield from ((str(key), found) for key, found in holder.items())
    elif isinstance(holder, list | tuple) or ("flax.nnx", "List") in set(library_classes(holder)):
        yield from ((str(i), found) for i, found in enumerate(holder))
    else:
        for name, found in vars(holder).items():
            if not name.startswith("_pytree__"):
                yield name, found

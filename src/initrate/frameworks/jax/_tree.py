"""The walk over a pytree: dicts, lists, Equinox modules, the params of Linen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import jax

from initrate.errors import InputError
from initrate.frameworks._parameter import MADE_UP, Parameter
from initrate.frameworks.jax._describe import library_classes, normalized_by
from initrate.frameworks.jax._layers import count_by_number, count_in_lists
from initrate.frameworks.jax._leaf import Leaf, is_floating, why_refused
from initrate.frameworks.jax._linen import Learned

_STATE = {("equinox", "State"), ("equinox", "StateIndex")}


def tree_leaves(tree: Any, learned: Mapping[tuple[str, ...], Learned] | None) -> list[Leaf]:
    """Return the floating leaves of a tree that are parameters.

    `learned` are the modules of Linen by their paths: they own the leaves of the params.
    """
    found = list(_leaves(tree, learned))
    if not found:
        raise InputError(
            f"tree is {type(tree).__name__}: expected a module of Flax NNX or Equinox, or a tree "
            "that holds arrays of floats"
        )
    return found


def _leaves(tree: Any, learned: Mapping[tuple[str, ...], Learned] | None) -> Iterator[Leaf]:
    collections = isinstance(tree, Mapping) and "params" in tree and learned is not None
    for index, (keys, array) in enumerate(jax.tree_util.tree_flatten_with_path(tree)[0]):
        if not is_floating(array):
            continue
        path, owners = _way(tree, keys)
        if any(_STATE & set(library_classes(owner)) for owner in owners):
            continue
        if collections:
            if path[0] != "params":
                continue
            path, owners = path[1:], owners[1:]
        inner = None
        if learned is None:
            modules = tuple(o if _is_module(o) else None for o in owners)
            n_layers = count_in_lists(owners, path)
        else:
            holder = learned.get(path[:-1])
            inner = None if holder is None else holder.shapes.get(path[-1])
            above = (learned.get(path[:depth]) for depth in range(len(path)))
            modules = tuple(None if found is None else found.module for found in above)
            n_layers = count_by_number(path, learned.keys())
        refuse = why_refused(array)
        if learned is not None and inner is None:
            modules = (*modules[:-1], None)
            refuse = refuse or "is made by no module that the example calls"
        elif learned is not None and path[-1] != "bias":
            name = learned[path[:-1]].normalized
            refuse = refuse or (normalized_by(name) if name else "")
        parameter = Parameter(
            path, modules, tuple(array.shape), n_layers, refuse=refuse, said=_said(path, modules)
        )
        # Two leaves that are one array are tied; a shape alone may stand for several arrays.
        key = index if isinstance(array, jax.ShapeDtypeStruct) else id(array)
        yield Leaf(parameter, array, key, index, inner)


def _said(path: tuple[str, ...], modules: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the path with a blank for each name that Linen made up, as in Dense_1."""
    inside = (*(modules[1:]), None)
    return tuple(
        MADE_UP if re.fullmatch(rf"{type(module).__name__}_\d+", name) else name
        for name, module in zip(path, inside, strict=True)
    )


def _is_module(owner: object) -> bool:
    """Return whether what holds a leaf says by its class what the leaf is."""
    return not isinstance(owner, Mapping | list | tuple) and type(owner).__module__ != "builtins"


def _way(tree: Any, keys: tuple[Any, ...]) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return the names on the way to a leaf, and what holds each of them."""
    path: list[str] = []
    owners: list[Any] = []
    holder = tree
    for key in keys:
        name, inside = _step(holder, key)
        # Boxes around an array, and what holds the tied modules of Equinox, are no names.
        if not _is_box(holder, name):
            path.append(name)
            owners.append(holder)
        holder = inside
    return (tuple(path), tuple(owners)) if path else (("value",), (None,))


def _step(holder: Any, key: Any) -> tuple[str, Any]:
    if isinstance(key, jax.tree_util.GetAttrKey):
        return key.name, getattr(holder, key.name, None)
    if isinstance(key, jax.tree_util.SequenceKey):
        return str(key.idx), _item(holder, key.idx)
    if isinstance(key, jax.tree_util.DictKey):
        return str(key.key), _item(holder, key.key)
    return str(getattr(key, "key", key)), None


def _item(holder: Any, key: Any) -> Any:
    try:
        return holder[key]
    except (KeyError, IndexError, TypeError):
        return None


def _is_box(holder: object, name: str) -> bool:
    if name == "pytree":
        return ("equinox", "Shared") in set(library_classes(holder))
    # Variables of NNX, and what Linen puts around an array that has names for its axes.
    return name == "value" and any(hasattr(holder, word) for word in ("unbox", "get_value"))

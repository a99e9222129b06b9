"""What a module of Flax Linen says of its params: which of its modules makes which of them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from initrate.errors import InputError
from initrate.frameworks.jax._describe import NORMALIZED, library_classes


@dataclass(frozen=True, slots=True)
class Learned:
    """A module of Linen at its path, and the shapes it made its own params with."""

    module: Any
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    normalized: str = ""
    """The class of the norm that its weights go through, if any."""


def learn(module: Any, example: Any) -> dict[tuple[str, ...], Learned]:
    """Return the modules that an example calls, by their paths; nothing is computed.

    `example` is what `__call__` is given: one argument; a tuple of them; or a mapping, if all its
    keys are names of arguments. Shapes will do for arrays.
    """
    if ("flax.linen", "Module") not in set(library_classes(module)):
        raise InputError(
            f"module is {type(module).__name__}: expected the flax.linen module of the params"
        )
    if example is None:
        raise InputError(
            "module is given without example: give what it is called with, as in "
            "example=jax.ShapeDtypeStruct((1, 16), 'int32')"
        )
    from flax import linen

    found: dict[tuple[str, ...], Learned] = {}
    normalized: dict[tuple[str, ...], str] = {}

    def record(next_fun: Any, args: Any, kwargs: Any, context: Any) -> Any:
        result = next_fun(*args, **kwargs)
        here = context.module
        if here.scope is not None:
            held = linen.meta.unbox(dict(here.variables.get("params", {})))
            shapes = {
                name: tuple(x.shape) for name, x in held.items() if not isinstance(x, Mapping)
            }
            earlier = found.get(here.path)
            found[here.path] = Learned(here, {**(earlier.shapes if earlier else {}), **shapes})
            if type(here).__name__ in NORMALIZED:
                normalized[here.layer_instance.path] = type(here).__name__
        return result

    args, kwargs = _arguments(module, example)
    arrays = [x for x in jax.tree.leaves((args, kwargs)) if _is_array(x)]

    def start(key: Any, arrays: list[Any]) -> Any:
        given = iter(arrays)
        filled = jax.tree.map(lambda x: next(given) if _is_array(x) else x, (args, kwargs))
        return module.init({"params": key}, *filled[0], **filled[1])

    try:
        with linen.intercept_methods(record):
            jax.eval_shape(start, jax.random.key(0), arrays)
    except Exception as error:
        first = str(error).strip().splitlines()[:1]
        raise InputError(
            f"{type(module).__name__} cannot be called with the example: "
            f"{type(error).__name__}: {first[0] if first else ''}"
        ) from error
    return {
        path: replace(here, normalized=normalized.get(path, "")) for path, here in found.items()
    }


def _is_array(x: object) -> bool:
    return isinstance(x, jax.Array | np.ndarray | jax.ShapeDtypeStruct)


def _arguments(module: Any, example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call, by place and by name."""
    if isinstance(example, tuple):
        return example, {}
    if isinstance(example, Mapping):
        names = inspect.signature(type(module).__call__).parameters
        if all(isinstance(key, str) and key in names for key in example):
            return (), dict(example)
    return (example,), {}

"""The walk over a Keras model: its weights by layers, under names that do not change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import keras

from initrate.errors import InputError
from initrate.frameworks._parameter import MADE_UP, Parameter
from initrate.frameworks.keras._classes import NORMALIZED, keras_classes


@dataclass(frozen=True, slots=True)
class Place:
    """A weight at one of its names."""

    parameter: Parameter
    variable: Any


def walk(model: Any) -> list[Place]:
    """Return the weights that training may change, each at every one of its names."""
    if not isinstance(model, keras.Layer):
        raise InputError(f"model is {type(model).__name__}: expected a model or layer of Keras 3")
    found = list(_places(model, (), (), (), (), frozenset()))
    if not found:
        raise InputError(
            f"{type(model).__name__} {model.name!r} has no weights: build it, or call it once"
        )
    return found


def _places(
    layer: Any,
    path: tuple[str, ...],
    said: tuple[str, ...],
    owners: tuple[Any, ...],
    lists: tuple[int, ...],
    around: frozenset[int],
) -> Iterator[Place]:
    """Yield the weights of a layer and of those in it; `lists` are the lengths of lists around."""
    _refuse_unbuilt(layer, path)
    full = (*owners, layer)
    if NORMALIZED not in set(keras_classes(layer)):
        for name, variable in _own(layer):
            refuse = _why_refused(layer, name, owners)
            n_layers = lists[0] if len(lists) == 1 else None
            parameter = Parameter(
                (*path, name),
                full,
                tuple(variable.shape),
                n_layers,
                refuse=refuse,
                said=(*said, name),
            )
            yield Place(parameter, variable)
    around = around | {id(layer)}
    for names, made_up, child, length in _children(layer):
        if id(child) not in around:
            inside = (*lists, length) if length > 1 else lists
            # What holds the layers of a list is no layer.
            between = (None,) * (len(names) - 1)
            told = (*said, MADE_UP) if made_up else (*said, *names)
            yield from _places(child, (*path, *names), told, (*full, *between), inside, around)


def _why_refused(layer: Any, name: str, owners: tuple[Any, ...]) -> str:
    if getattr(layer, "quantization_mode", None) is not None and name != "bias":
        return f"is held by a quantized {type(layer).__name__}: draw before quantizing"
    wrapped = owners and owners[-1] is not None and NORMALIZED in set(keras_classes(owners[-1]))
    if wrapped and name != "bias":
        return f"is normalized by {NORMALIZED}, which takes its size out again: draw without it"
    return ""


def _refuse_unbuilt(layer: Any, path: tuple[str, ...]) -> None:
    """Refuse a layer that will make its weights later, by its own initializers."""
    if not layer.built and not hasattr(layer.build, "_is_default"):
        name = ".".join(path) or layer.name
        raise InputError(
            f"layer {name!r} is not built, so that it has no weights yet: call the model once"
        )


def _own(layer: Any) -> Iterator[tuple[str, Any]]:
    """Yield the weights that a layer itself holds, by name."""
    listed = list(layer._trainable_variables)
    if getattr(layer, "quantization_mode", None) is not None:
        listed += [v for v in layer._non_trainable_variables if v.name != "seed_generator_state"]
    attributes = {
        id(found): name
        for name, found in vars(layer).items()
        if isinstance(found, keras.Variable) and not name.startswith("_")
    }
    names = _Names()
    for variable in listed:
        yield names.unique(attributes.get(id(variable), variable.name)), variable


def _children(layer: Any) -> Iterator[tuple[tuple[str, ...], bool, Any, int]]:
    """Yield the layers in a layer, with their names, and the lengths of the lists they are in.

    Beside the names stands whether Keras made them up. It numbers its own names through all
    models of a process: an attribute is taken for the name, or the number within the layer.
    """
    attributes: dict[int, tuple[tuple[str, ...], int]] = {}
    for name, found in {**vars(layer), **getattr(layer, "_modules", {})}.items():
        if not name.startswith("_"):
            for names, child, length in _held(name, found):
                attributes.setdefault(id(child), (names, length))
    given = _Names()
    for child in layer._layers:
        if id(child) in attributes:
            names, length = attributes[id(child)]
            yield names, False, child, length
        else:
            stem = _snake(type(child).__name__)
            made_up = re.fullmatch(rf"{stem}(_\d+)?", child.name) is not None
            yield (given.unique(stem if made_up else child.name),), made_up, child, 1


def _held(name: str, found: Any) -> Iterator[tuple[tuple[str, ...], Any, int]]:
    if isinstance(found, keras.Layer):
        yield (name,), found, 1
    elif isinstance(found, list | tuple):
        listed = [x for x in found if isinstance(x, keras.Layer)]
        length = 1 if "expert" in name.lower() else len(listed)
        for index, child in enumerate(found):
            if isinstance(child, keras.Layer):
                yield (name, str(index)), child, length
    elif isinstance(found, Mapping):
        for key, child in found.items():
            if isinstance(child, keras.Layer):
                yield (name, str(key)), child, 1


class _Names:
    """Names that are each used once: dense, dense_1, dense_2."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """Return the name, with a number where it was used before."""
        count = self._used.get(name, 0)
        self._used[name] = count + 1
        return f"{name}_{count}" if count else name


def _snake(name: str) -> str:
    """Return the name that Keras makes up for a layer of this class."""
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()

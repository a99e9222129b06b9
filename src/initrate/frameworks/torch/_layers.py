"""How many layers the stack has that a parameter is in."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

_COPIES = ("expert",)
_REPEATED = {"AlbertTransformer": "num_hidden_layers"}
"""Stacks whose layers are used again and again, and what in their config says how often in all."""

_LOOPED = ("HrmTextModel", "Inkling2LoopTextModel")
"""Models that go through their layers several times, so that a list's length is not the depth."""


def count_layers(owners: Sequence[nn.Module], path: Sequence[str]) -> int | None:
    """Return the length of the list of layers around a parameter, or None.

    Lists of experts do not count: they are beside each other, not one after another. In a
    hierarchical model the layers of all its stages are counted.
    """
    if any(type(owner).__name__ in _LOOPED for owner in owners):
        return None
    for depth, (owner, name) in enumerate(zip(owners, path, strict=False)):
        if not isinstance(owner, nn.ModuleList | nn.Sequential) or not name.isdigit():
            continue
        if depth and _is_copies(path[depth - 1]):
            continue
        if not _has_parts(owners[depth + 1]):
            # A sequence of maps, such as an MLP.
            continue
        above = owners[depth - 1] if depth else None
        repeats = _REPEATED.get(type(above).__name__)
        if repeats is not None:
            found = getattr(getattr(above, "config", None), repeats, None)
            return found if isinstance(found, int) else None
        inner = [i for i, word in enumerate(path[depth + 1 :], depth + 1) if word.isdigit()]
        return _stages(owner, path[depth + 1 : inner[0]]) if inner else _layers(owner)
    return None


def _has_parts(layer: nn.Module) -> bool:
    return next(layer.children(), None) is not None


def _layers(stack: nn.ModuleList | nn.Sequential) -> int:
    """Return how many of a list's modules are layers, and no single maps beside them."""
    return sum(_has_parts(layer) for layer in stack)


def _is_copies(name: str) -> bool:
    return any(word in name.lower() for word in _COPIES)


def _stages(outer: nn.ModuleList | nn.Sequential, between: Sequence[str]) -> int:
    """Return the number of layers of all stages, where each stage is a list of layers.

    A list of modules that are all of different classes is one layer with its parts, and so is a
    list of maps.
    """
    if any(_is_copies(name) for name in between):
        return _layers(outer)
    total = 0
    for stage in outer:
        if not _has_parts(stage):
            continue
        found: object = stage
        for name in between:
            found = getattr(found, name, None)
        total += _layers(found) if _is_stack(found) else 1  # pyright: ignore[reportArgumentType]
    return total


def _is_stack(found: object) -> bool:
    """Return whether a module is a list of layers that are alike, and not the maps of one layer."""
    if not isinstance(found, nn.ModuleList | nn.Sequential):
        return False
    classes = [type(layer) for layer in found if _has_parts(layer)]
    return len(classes) == 1 == len(found) or len(set(classes)) < len(classes)

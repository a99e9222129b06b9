"""How many layers the stack has that a parameter is in."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

_COPIES = ("expert",)


def count_layers(owners: Sequence[nn.Module], path: Sequence[str]) -> int | None:
    """Return the product of the lengths of the lists of layers around a parameter, or None.

    Lists of experts count once: they are beside each other, not one after another. Where the
    stages of a hierarchical model differ in length, the layers of all its stages are counted.
    """
    outer: nn.Module | None = None
    for depth, (owner, name) in enumerate(zip(owners, path, strict=False)):
        is_list = isinstance(owner, nn.ModuleList | nn.Sequential) and name.isdigit()
        if is_list and not any(word in path[depth - 1].lower() for word in _COPIES if depth):
            outer = owner
            inner = [i for i, word in enumerate(path[depth + 1 :], depth + 1) if word.isdigit()]
            return _stages(outer, path[depth + 1 : inner[0]], path) if inner else len(outer)  # pyright: ignore[reportArgumentType]
    return None


def _stages(outer: nn.Module, between: Sequence[str], path: Sequence[str]) -> int:
    """Return the number of layers of all stages, where each stage is a list of layers."""
    if any(word in name.lower() for name in between for word in _COPIES):
        return len(list(outer.children()))
    total = 0
    for stage in outer.children():
        found: object = stage
        for name in between:
            found = getattr(found, name, None)
        total += len(found) if isinstance(found, nn.ModuleList) else 1
    return total

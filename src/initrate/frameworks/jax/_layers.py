"""How many layers the stack has that a parameter is in."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from initrate.frameworks.jax._describe import library_classes

_NUMBERED = re.compile(r"(.*\D)_?(\d+)$")


def count_in_lists(owners: Sequence[Any], path: Sequence[str]) -> int | None:
    """Return the length of the one list of layers around a parameter; None where that is unclear.

    The lists inside an MLP or a Sequential, and those of experts, are no lists of layers.

    >>> count_in_lists([{}, ["a", "b"], "a"], ["blocks", "0", "kernel"])
    2
    """
    lengths = []
    for depth, name in enumerate(path[:-1]):
        holder = owners[depth]
        if not name.isdigit() or not hasattr(holder, "__len__"):
            continue
        inside = owners[depth - 1] if depth else None
        classes = {found for _, found in library_classes(inside)}
        if classes & {"MLP", "Sequential"} or (depth and "expert" in path[depth - 1].lower()):
            continue
        lengths.append(len(holder))
    return lengths[0] if len(lengths) == 1 else None


def count_by_number(path: Sequence[str], paths: Collection[tuple[str, ...]]) -> int | None:
    """Return how many modules are numbered beside the one that a parameter is in.

    `paths` are those of all modules. Where more than one owner has numbered neighbours, it is not
    clear which of them are layers.

    >>> count_by_number(("Block_0", "Mlp_0", "Dense_1", "kernel"), {("Block_0",), ("Block_1",)})
    2
    """
    counts = []
    for depth in range(len(path) - 2):
        found = _NUMBERED.match(path[depth])
        if found:
            stem = re.compile(re.escape(found[1]) + r"_?\d+$")
            beside = {p for p in paths if len(p) == depth + 1 and p[:-1] == tuple(path[:depth])}
            counts.append(sum(bool(stem.match(p[-1])) for p in beside))
    several = [count for count in counts if count > 1]
    if not counts or len(several) > 1:
        return None
    return several[0] if several else 1

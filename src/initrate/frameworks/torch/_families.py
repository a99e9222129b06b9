"""Layouts of model families: data files that say what the parameters of a class are.

A file of `frameworks/layouts` has tables named by a class of the family. An entry of a table is

    "path.of.parameter" = { axes = ["out", "in"], role = "mlp_in" }

where the path starts at a module of the class. Further keys: `roles`, several where the map holds
several; `parts`, a list of [role, length] along the axis `axis` (the output's unless it is said),
one after another, or with `interleaved = true` again and again; `keep`, the reason why it is kept;
`when`, the attributes of the module for which the entry holds, a list of entries then standing
where one does. A length is a product of numbers and attributes of the module, as in
"num_heads * head_dim".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any, cast

from torch import nn

from initrate.errors import InputError
from initrate.files import load_toml
from initrate.frameworks.torch._layout import Axes, Part
from initrate.rule import DENSE_ROLES, Slice

Entry = Mapping[str, Any]


@lru_cache(maxsize=1)
def families() -> dict[str, dict[str, tuple[Entry, ...]]]:
    """Return all entries, by class and path."""
    found: dict[str, dict[str, tuple[Entry, ...]]] = {}
    folder = resources.files("initrate.frameworks") / "layouts"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".toml"):
            for owner, entries in load_toml(file.read_text(encoding="utf-8")).items():
                if owner in found:
                    raise InputError(f"layouts: {owner!r} stands in two files")
                table = cast("Mapping[str, Any]", entries)
                found[owner] = {
                    path: tuple(entry) if isinstance(entry, list) else (entry,)
                    for path, entry in table.items()
                }
    return found


def family_axes(owner: nn.Module, path: str, shape: tuple[int, ...]) -> Axes | None:
    """Return what the data files say of a parameter at a path below a module, or None."""
    tables = families()
    for base in type(owner).__mro__:
        for entry in tables.get(base.__name__, {}).get(path, ()):
            if all(attribute(owner, name) == x for name, x in entry.get("when", {}).items()):
                return _axes(entry, owner, shape)
    return None


def attribute(owner: object, path: str) -> Any:
    """Return an attribute of a module, or of what is in it: `config.hidden_size`."""
    for name in path.split("."):
        owner = getattr(owner, name, None)
    return owner


def _length(owner: nn.Module, text: str | int) -> int | None:
    """Return a product of numbers and attributes, or None where one of them is not there."""
    factors = [
        int(word) if word.isdigit() else attribute(owner, word)
        for word in (part.strip() for part in str(text).split("*"))
    ]
    return math.prod(factors) if all(isinstance(x, int) for x in factors) else None


def _axes(entry: Entry, owner: nn.Module, shape: tuple[int, ...]) -> Axes | None:
    keep = entry.get("keep", "")
    roles = (entry["role"],) if "role" in entry else tuple(entry.get("roles", ()))
    words = tuple(entry.get("axes", ()))
    if keep:
        return Axes(parts=(Part(roles or ("structured",)),), keep=keep)
    if words and len(words) != len(shape):
        return None
    if "parts" not in entry:
        return Axes(words, parts=(Part(roles or DENSE_ROLES),))
    axis = entry.get("axis", words.index("out"))
    lengths = [(role, _length(owner, text)) for role, text in entry["parts"]]
    names = tuple(role for role, _ in lengths)
    whole = sum(length for _, length in lengths if length is not None)
    fits = shape[axis] % whole == 0 if whole and entry.get("interleaved") else shape[axis] == whole
    if not fits or any(length is None for _, length in lengths):
        # The parts are known, and where they lie is not.
        return Axes(words, parts=(Part(names),))
    period, start, parts = whole if entry.get("interleaved") else None, 0, []
    for role, length in lengths:
        assert length is not None
        count = sum(part.name.split(".")[0] == role for part in parts)
        name = f"{role}.{count}" if count else role
        parts.append(Part((role,), Slice(axis, start, length, period), name))
        start += length
    return Axes(words, parts=tuple(parts))

"""Layouts of model families: data files that say what the parameters of a class are.

A file of `frameworks/layouts` has tables named by a class of the family, or of any name with the
classes listed in `classes`. A class is meant by its name alone where it is one of transformers,
and by its module and name elsewhere. An entry of a table is

    "path.of.parameter" = { axes = ["out", "in"], role = "mlp_in" }

where the path starts at a module of the class. Further keys: `roles`, several where the map is
one of these; `parts`, a list of [role, length] along the axis `axis` (the first output's unless
it is said), one after another, or with `interleaved = true` again and again; `chunks`, the roles
of equal parts, one after another, or with `interleaved = true` taking turns one by one; `divide`,
what d_in is divided by; `keep`, the reason why it is kept; `refuse`, the reason why it cannot be
drawn; `when`, the attributes of the module for which the entry holds, a list of entries then
standing where the first one does that holds. A length is a product of numbers and attributes of
the module, as in "num_heads * head_dim", or a quotient, as in "num_heads / groups * head_dim".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any, cast

from torch import nn

from initrate.errors import InputError
from initrate.files import load_toml
from initrate.frameworks._layout import Axes, Part
from initrate.rule import DENSE_ROLES, Slice

Entry = Mapping[str, Any]
Table = Mapping[str, tuple[Entry, ...]]

KEYS = (
    *("axes", "role", "roles", "parts", "chunks", "axis", "interleaved", "divide"),
    *("keep", "refuse", "when"),
)
"""What an entry may say."""


@lru_cache(maxsize=1)
def families() -> dict[str, Table]:
    """Return all entries, by class and path."""
    found: dict[str, Table] = {}
    folder = resources.files("initrate.frameworks") / "layouts"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if not file.name.endswith(".toml"):
            continue
        for name, entries in load_toml(file.read_text(encoding="utf-8")).items():
            table = dict(cast("Mapping[str, Any]", entries))
            owners = table.pop("classes", [name])
            paths = {
                path: tuple(entry) if isinstance(entry, list) else (entry,)
                for path, entry in table.items()
            }
            for owner in owners:
                if owner in found:
                    raise InputError(f"layouts: {owner!r} stands twice, again in {file.name}")
                found[owner] = paths
    return found


@lru_cache(maxsize=4096)
def _tables(owner: type) -> tuple[Table, ...]:
    """Return the tables of a class and of those it is derived from, its own first."""
    every = families()
    found = (
        table
        for base in owner.__mro__
        for name in (f"{base.__module__}.{base.__name__}", base.__name__)
        # A class of the same name elsewhere may lay its parameters out in another way.
        if "." in name or base.__module__.startswith("transformers.")
        if (table := every.get(name)) is not None
    )
    return tuple(found)


def family_axes(owner: nn.Module, path: str, shape: tuple[int, ...]) -> Axes | None:
    """Return what the data files say of a parameter at a path below a module, or None."""
    for table in _tables(type(owner)):
        for entry in table.get(path, ()):
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
    length = 1
    for sign, word in re.findall(r"([*/]?)\s*([\w.]+)", str(text)):
        found = int(word) if word.isdigit() else attribute(owner, word)
        if not isinstance(found, int) or found < (sign == "/") or (sign == "/" and length % found):
            return None
        length = length // found if sign == "/" else length * found
    return length


def _axes(entry: Entry, owner: nn.Module, shape: tuple[int, ...]) -> Axes | None:
    roles = (entry["role"],) if "role" in entry else tuple(entry.get("roles", ()))
    words = tuple(entry.get("axes", ()))
    if "keep" in entry:
        return Axes(parts=(Part(roles or ("structured",)),), keep=entry["keep"])
    if "refuse" in entry:
        return Axes(parts=(Part(roles),), refuse=entry["refuse"])
    if roles == ("bias",):
        return Axes(parts=(Part(roles),))
    if len(words) != len(shape):
        return None
    divide = _length(owner, entry.get("divide", 1))
    if divide is None:
        return Axes(words, parts=(Part(roles),), refuse="has a d_in that its module does not tell")
    return Axes(words, parts=_parts(entry, owner, words, shape), divide_d_in=divide)


def _parts(
    entry: Entry, owner: nn.Module, words: tuple[str, ...], shape: tuple[int, ...]
) -> tuple[Part, ...]:
    """Return the parts of a parameter; where they lie, if the module tells their lengths."""
    table = ("token_embedding",) if "width" in words else DENSE_ROLES
    if "parts" not in entry and "chunks" not in entry:
        return (Part((entry["role"],) if "role" in entry else tuple(entry.get("roles", table))),)
    axis = entry.get("axis", words.index("out"))
    interleaved = entry.get("interleaved", False)
    if "chunks" in entry:
        roles = tuple(entry["chunks"])
        whole = len(roles) if interleaved else shape[axis]
        lengths = [(role, whole // len(roles)) for role in roles if whole % len(roles) == 0]
    else:
        lengths = [(role, _length(owner, text)) for role, text in entry["parts"]]
        roles = tuple(role for role, _ in lengths)
    return parts_at(roles, [length for _, length in lengths], axis, shape, interleaved=interleaved)


def parts_at(
    roles: tuple[str, ...],
    lengths: list[int | None],
    axis: int,
    shape: tuple[int, ...],
    *,
    interleaved: bool = False,
) -> tuple[Part, ...]:
    """Return parts of these lengths, one after another along an axis, or again and again.

    Lengths that do not fill the axis leave one part, which is one of the roles.

    >>> [part.where.start for part in parts_at(("key", "value"), [4, 4], 0, (8, 3))]
    [0, 4]
    """
    known = [length for length in lengths if length is not None]
    whole = sum(known)
    fits = len(known) == len(roles) and whole > 0
    if not fits or (shape[axis] % whole if interleaved else shape[axis] != whole):
        return (Part(tuple(dict.fromkeys(roles))),)
    start, parts, period = 0, [], whole if interleaved else None
    for role, length in zip(roles, known, strict=True):
        if length == 0:
            continue
        count = sum(part.roles == (role,) for part in parts)
        name = f"{role}.{count}" if count else role
        parts.append(Part((role,), Slice(axis, start, length, period), name))
        start += length
    return tuple(parts)

"""Patterns of names: which tensors of a model are meant."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from initrate.errors import InputError


def chosen(name: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> bool:
    """Return whether a name is meant by the patterns of `include` and not by those of `exclude`.

    >>> chosen("vision.fc.weight", ("vision.*",), ("*.bias",))
    True
    """
    meant = not include or any(fnmatchcase(name, pattern) for pattern in include)
    return meant and not any(fnmatchcase(name, pattern) for pattern in exclude)


def patterns(word: str, found: str | Sequence[str]) -> tuple[str, ...]:
    """Return the patterns as a tuple; one may be given as text."""
    listed = (found,) if isinstance(found, str) else tuple(found)
    for pattern in listed:
        if not isinstance(pattern, str) or not pattern:
            raise InputError(f"{word} has {pattern!r}: expected a pattern such as 'encoder.*'")
    return listed

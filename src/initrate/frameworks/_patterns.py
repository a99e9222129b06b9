"""Patterns of names: which tensors of a model are meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from initrate.errors import InputError
from initrate.frameworks._layout import Layout


def chosen(name: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> bool:
    """Return whether a name is meant by the patterns of `include` and not by those of `exclude`.

    >>> chosen("vision.fc.weight", ("vision.*",), ("*.bias",))
    True
    """
    meant = not include or any(fnmatchcase(name, pattern) for pattern in include)
    return meant and not any(fnmatchcase(name, pattern) for pattern in exclude)


def refuse_idle(word: str, listed: Sequence[str], names: Sequence[str]) -> None:
    """Refuse a pattern that means no tensor at all: it is a slip."""
    for pattern in listed:
        if not any(fnmatchcase(name, pattern) for name in names):
            near = get_close_matches(pattern.strip("*."), names, n=1, cutoff=0.3)
            hint = f", such as {near[0]!r}" if near else ""
            raise InputError(f"{word} has {pattern!r}: no tensor has such a name{hint}")


def refuse_idle_layouts(
    layouts: Sequence[Layout], fits: Callable[[Layout], bool], such: str
) -> None:
    """Refuse a layout that fits no parameter at all; `such` is a pattern of a path, as one may be.

    `fits` says whether a layout is of any parameter of the model.
    """
    for layout in layouts:
        if not fits(layout):
            raise InputError(
                f"the layout of {layout.name!r} with {', '.join(map(repr, layout.axes))} fits no "
                "parameter of the model: expected its class, or a pattern of its path such as "
                f"{such!r}, and its parameter's own name"
            )


def patterns(word: str, found: str | Sequence[str]) -> tuple[str, ...]:
    """Return the patterns as a tuple; one may be given as text."""
    if not isinstance(found, str | list | tuple):
        raise InputError(f"{word} is {found!r}: expected a pattern such as 'encoder.*', or a list")
    listed = (found,) if isinstance(found, str) else tuple(found)
    for pattern in listed:
        if not isinstance(pattern, str) or not pattern:
            raise InputError(f"{word} has {pattern!r}: expected a pattern such as 'encoder.*'")
    return listed

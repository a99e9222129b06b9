"""Canonical names: wrappers around a model do not change what keys its random numbers."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from initrate.errors import InputError

_WRAPPERS = re.compile(r"(^|(?<=\.))(_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")


def canonical_name(name: str, *, wrapped: bool = False) -> str:
    """Return the name without the wrappers of compile, FSDP, checkpointing, and DDP if `wrapped`.

    >>> canonical_name("module._orig_mod.h.0.attn.c_attn.weight", wrapped=True)
    'h.0.attn.c_attn.weight'
    """
    if wrapped:
        name = name.removeprefix("module.")
    return _WRAPPERS.sub("", name).replace(".base_layer.", ".")


def chosen(name: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> bool:
    """Return whether a name is meant by the patterns of `include` and not by those of `exclude`.

    >>> chosen("vision.fc.weight", ("vision.*",), ("*.bias",))
    True
    """
    meant = not include or any(fnmatchcase(name, pattern) for pattern in include)
    return meant and not any(fnmatchcase(name, pattern) for pattern in exclude)


def patterns(word: str, found: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """Return the patterns as a tuple; one may be given as text."""
    listed = (found,) if isinstance(found, str) else tuple(found)
    for pattern in listed:
        if not isinstance(pattern, str) or not pattern:
            raise InputError(f"{word} has {pattern!r}: expected a pattern such as 'encoder.*'")
    return listed

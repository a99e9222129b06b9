"""Reading models of users, which may raise anything: one line says what."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from initrate.errors import InputError


def told(error: BaseException) -> str:
    """Return an error of any kind in one line: its class and its words.

    >>> told(KeyError("wte"))
    "KeyError: 'wte'"
    """
    words = " ".join(str(error).split())
    short = words if len(words) <= 300 else f"{words[:297]}..."
    return f"{type(error).__name__}: {short}" if short else type(error).__name__


@contextmanager
def reading(model: object) -> Iterator[None]:
    """Tell in one line what a model raises while its parts are read, before anything is changed.

    >>> with reading([]):
    ...     [][0]
    Traceback (most recent call last):
    initrate.errors.InputError: list cannot be read: IndexError: list index out of range
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{type(model).__name__} cannot be read: {told(error)}") from error

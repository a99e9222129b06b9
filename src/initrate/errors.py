"""Errors of bad input: one line that says what was found, what was expected and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])


class InputError(ValueError):
    """Bad input from a user, told in one line; the command line prints it and exits with 2."""


class StoreError(InputError):
    """A study folder that is not what it should be: foreign, half-written, tampered, or full."""


class FindingError(AssertionError):
    """A model whose weights are not what a rule says, told in one line: for tests of users."""


def unknown(kind: str, name: object, known: Iterable[str]) -> InputError:
    """Return the error for a name that is not known, with the nearest valid one.

    >>> str(unknown("rule", "formla", ["formula", "gpt2"]))
    "unknown rule 'formla': did you mean 'formula'? known: formula, gpt2"
    """
    names = list(known)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return InputError(f"unknown {kind} {str(name)!r}: {hint}known: {', '.join(names)}")


def whole_number(name: str, found: object, *, least: int, most: int) -> int:
    """Return `found` if it is a whole number from `least` to `most`, else raise the error.

    >>> whole_number("steps", 100, least=1, most=1000)
    100
    >>> whole_number("steps", 0.5, least=1, most=1000)
    Traceback (most recent call last):
        ...
    initrate.errors.InputError: steps is 0.5: expected a whole number from 1 to 1,000
    """
    if not isinstance(found, int) or isinstance(found, bool):
        shown = repr(found)
    elif least <= found <= most:
        return found
    else:
        shown = str(found) if abs(found) < 10**20 else "beyond all bounds"
    raise InputError(f"{name} is {shown}: expected a whole number from {least:,} to {most:,}")


def in_line(found: object, *, most: int = 60) -> str:
    """Return what was found as it is written in Python, in one line of at most so many characters.

    >>> in_line("a b"), in_line(list(range(100)), most=12)
    ("'a b'", '[0, 1, 2,...')
    """
    text = " ".join(line.strip() for line in repr(found).splitlines())
    return text if len(text) <= most else text[: most - 3] + "..."


def function_or_none(name: str, found: Function | None) -> Function | None:
    """Return `found` if it can be called or is None, else raise the error.

    >>> function_or_none("on_event", 5)
    Traceback (most recent call last):
        ...
    initrate.errors.InputError: on_event is 5: expected a function, or None
    """
    if found is None or callable(found):
        return found
    raise InputError(f"{name} is {in_line(found)}: expected a function, or None")

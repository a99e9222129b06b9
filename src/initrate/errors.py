"""Errors of bad input: one line that says what was found, what was expected and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Bad input from a user, told in one line; the command line prints it and exits with 2."""


class StoreError(InputError):
    """A study folder that is not what it should be: foreign, half-written, tampered, or full."""


def unknown(kind: str, name: object, known: Iterable[str]) -> InputError:
    """Return the error for a name that is not known, with the nearest valid one.

    >>> str(unknown("rule", "formla", ["formula", "gpt2"]))
    "unknown rule 'formla': did you mean 'formula'? known: formula, gpt2"
    """
    names = list(known)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return InputError(f"unknown {kind} {str(name)!r}: {hint}known: {', '.join(names)}")

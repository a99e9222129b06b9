"""What goes to the standard streams, also where one is closed, full or read by nobody."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

from initrate.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

NARROWEST = 40
"""Columns that tables have at least, whatever the terminal says of itself."""


def open_missing_streams() -> None:
    """Point streams that the caller closed to nowhere: Python has None in their place.

    Lines meant for a closed standard error would else be printed among the results.
    """
    if sys.stdout is None:
        sys.stdout = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()


def write(text: str, *, end: str = "\n") -> None:
    """Write to standard output and see it through; one that is full is an `InputError`.

    A reader that has gone (`| head`) wants no more: the command goes on to its own exit code.
    """
    try:
        print(_encodable(text, sys.stdout), end=end, flush=True)
    except BrokenPipeError:
        _silence(sys.stdout)
    except OSError as error:
        _silence(sys.stdout)
        raise InputError(
            f"standard output cannot be written: {error.strerror or error}; send it elsewhere"
        ) from error


def _encodable(text: str, stream: TextIO) -> str:
    """What the stream's encoding lacks is written as \\x and \\u, and not refused."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def tell(line: str) -> None:
    """Write a line to standard error; where that fails, there is nobody left to tell."""
    try:
        print(_encodable(line, sys.stderr), file=sys.stderr, flush=True)
    except OSError:
        _silence(sys.stderr)


def show(*renderables: RenderableType) -> None:
    """Write tables and the like to standard output, as wide as their longest word at least."""
    from rich.console import Console, Group
    from rich.measure import Measurement

    shown = Group(*renderables)
    console = wide_enough(Console(highlight=False, markup=False))
    unbounded = console.options.update(max_width=10_000)
    least = Measurement.get(console, unbounded, shown).minimum
    if least > console.width:
        console.width = least
    with console.capture() as captured:
        console.print(shown)
    write(captured.get(), end="")


def wide_enough(console: Console) -> Console:
    """Return the console, its width at least `NARROWEST`: at width 0 it would show nothing."""
    if console.width < NARROWEST:
        console.width = NARROWEST
    return console


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123


def _silence(stream: TextIO) -> None:
    """What is left in the stream's buffer would fail once more when Python flushes it at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)

"""Reading what others may have written: bounded in size and nesting, checked in form."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from initrate.errors import InputError, StoreError
from initrate.files._messages import shown

TEXT_LIMIT = 1_000_000
"""Bytes of a TOML or JSON file that are read; more is refused."""

NESTING_LIMIT = 32
"""Tables and lists inside each other in a TOML or JSON file; more is refused."""

# The standard reader takes time and memory quadratic in the parts of one dotted key: 100 kB of
# `a.a.a…` can take all memory, so such a key is refused before it is read.
_KEY_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w-])(?:{_KEY_PART}[ \t]*+\.[ \t]*+){{{NESTING_LIMIT}}}")


def read_bounded(path: Path, limit: int, *, links: bool = True) -> bytes:
    """Return the bytes of a plain file of at most `limit` bytes; anything else is an error.

    Without `links`, a symbolic link is an error too: for files that a program wrote itself.
    """
    with _plain_file(path, links) as file:
        found = file.read(limit + 1)
    if len(found) > limit:
        raise InputError(f"{shown(path)} is larger than {limit:,} bytes: expected a smaller file")
    return found


def sha256_file(path: Path, *, links: bool = True) -> str:
    """Return the SHA-256 of a file's bytes as 64 hex digits, read piece by piece."""
    with _plain_file(path, links) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_plain(path: Path, *, links: bool = True) -> None:
    """Check that a plain file can be read here, for a reader of others that opens it by itself."""
    with _plain_file(path, links):
        pass


@contextmanager
def _plain_file(path: Path, links: bool) -> Iterator[io.BufferedReader]:
    """Yield an open file; a pipe or a device, which may never end, is not opened at all."""
    try:
        path = Path(path)
        if path.is_symlink() and (not links or not path.exists()):
            whither = "a link" if path.exists() else "a link to nothing"
            raise InputError(f"{shown(path)} is {whither}: expected a plain file")
        _check_mode(path, path.stat().st_mode)
        # What took its name since then is found out as well, and a pipe is not waited for.
        with open(path, "rb", opener=_without_waiting) as file:
            _check_mode(path, os.fstat(file.fileno()).st_mode)
            yield file
    except OSError as error:
        raise InputError(f"cannot read {shown(path)}: {error.strerror or error}") from error
    except TypeError:
        raise InputError(f"the file is {path!r}: expected a path") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        # A path with a null byte is refused before the system sees it.
        raise InputError(f"cannot read {shown(path)}: {_one_line(error)}") from error


def _check_mode(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise InputError(f"{shown(path)} is a folder: expected a file")
    if not stat.S_ISREG(mode):
        raise InputError(f"{shown(path)} is not a plain file: expected a file on a disk")


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def inside(root: Path, relative: str) -> Path:
    """Return the path of a name under `root`; a name that leads out of it is an error.

    The name may come from a file that someone else wrote: absolute paths, `..` and symbolic
    links that lead outside are refused. What it names need not exist.

    >>> inside(Path("study"), "parts/0/cells.parquet").parts
    ('study', 'parts', '0', 'cells.parquet')
    """
    if not isinstance(relative, str):
        raise StoreError(f"the path {relative!r} is not text: expected a name under {shown(root)}")
    name = PurePosixPath(relative)
    if not name.parts or "\0" in relative or "\\" in relative:
        raise StoreError(f"the path {relative!r} is no name under {shown(root)}")
    if name.is_absolute() or ".." in name.parts:
        raise StoreError(f"the path {relative!r} leads out of {shown(root)}: expected a name in it")
    path = Path(root, *name.parts)
    try:
        home, real = Path(root).resolve(), path.resolve()
    except (OSError, RuntimeError) as error:
        raise StoreError(f"the path {relative!r} under {shown(root)} is a loop of links") from error
    if not real.is_relative_to(home):
        raise StoreError(f"the path {relative!r} leads out of {shown(root)} through a link")
    return path


def load_toml(
    source: Path | str, limit: int = TEXT_LIMIT, *, links: bool = True
) -> dict[str, object]:
    """Return the values of a TOML file (a `Path`) or of TOML text (a `str`).

    >>> load_toml("gamma = 0.8")
    {'gamma': 0.8}
    """
    text, name = _text_of(source, limit, links)
    long_key = _LONG_KEY.search(text)
    if long_key:
        number = text.count("\n", 0, long_key.start()) + 1
        raise InputError(f"{name}: line {number} has a key of more than {NESTING_LIMIT} parts")
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is not TOML: {_one_line(error)}") from error
    except RecursionError as error:
        raise _nested(name) from error
    except ValueError as error:
        raise InputError(f"{name} is not TOML: {_one_line(error)}") from error
    _check_values(found, name)
    return found


def load_json(source: Path | str, limit: int = TEXT_LIMIT, *, links: bool = True) -> object:
    """Return the value of a JSON file (a `Path`) or of JSON text (a `str`).

    Stricter than the standard reader: nan, infinity and a key given twice are errors.

    >>> load_json('{"schema": 1}')
    {'schema': 1}
    """
    text, name = _text_of(source, limit, links)
    try:
        found = json.loads(
            text, object_pairs_hook=_object_without_repeats, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        raise InputError(f"{name} is not JSON: line {error.lineno}: {error.msg}") from error
    except RecursionError as error:
        raise _nested(name) from error
    except ValueError as error:
        raise InputError(f"{name} is not JSON: {_one_line(error)}") from error
    _check_values(found, name)
    return found


def _text_of(source: Path | str, limit: int, links: bool) -> tuple[str, str]:
    """Return the text and what to call it in an error."""
    if isinstance(source, str):
        if len(source.encode("utf-8", "surrogatepass")) > limit:
            raise InputError(f"the text is larger than {limit:,} bytes: expected a smaller one")
        return source, "the text"
    try:
        return read_bounded(source, limit, links=links).decode("utf-8"), shown(source)
    except UnicodeDecodeError as error:
        raise InputError(f"{shown(source)} is not text in UTF-8: byte {error.start}") from error


def _object_without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} is given twice")
    return found


def _refuse_constant(text: str) -> object:
    raise ValueError(f"{text} is no JSON number")


def _check_values(found: object, name: str) -> None:
    """Check depth and texts level by level: a recursive walk could itself run out of stack."""
    level: list[object] = [found]
    for _ in range(NESTING_LIMIT + 2):
        if not level:
            return
        inner: list[object] = []
        for item in level:
            if isinstance(item, str):
                _check_text(item, name)
            elif isinstance(item, dict):
                inner += item.keys()
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        level = inner
    raise _nested(name)


def _check_text(text: str, name: str) -> None:
    """Check that the text can be written again: JSON can name halves of characters."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError(f"{name} has a text with half a character: {text!a}")


def _nested(name: str) -> InputError:
    return InputError(f"{name} is nested more than {NESTING_LIMIT} deep: expected less")


def _one_line(error: ValueError) -> str:
    line = " ".join(str(error).split())
    # Python's own advice, to lift the limit in the program, is none for who wrote the number.
    return "a number has too many digits" if "int_max_str_digits" in line else line

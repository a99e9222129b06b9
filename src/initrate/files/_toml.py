"""TOML text from plain values, and plain values from TOML or JSON files of bounded size."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import cast

from initrate.errors import InputError

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
    '"': '\\"',
    "\\": "\\\\",
}


def dump_toml(plain: Mapping[str, object]) -> str:
    """Return the mapping as TOML text that reads back equal, to the last bit of every float.

    Values are text, numbers, truth values, lists of such (also of lists and of tables) and nested
    tables; None is left out. Plain values stand before tables, as TOML wants it.

    >>> print(dump_toml({"name": "laptop", "axes": {"gamma": [0.3, 0.5]}}), end="")
    name = "laptop"
    <BLANKLINE>
    [axes]
    gamma = [0.3, 0.5]
    """
    lines: list[str] = []
    _write_table(plain, (), lines)
    return "\n".join(lines).lstrip("\n") + "\n" if lines else ""


def dotted(table: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Return the plain values of nested tables by their dotted keys, as TOML may write them.

    >>> dotted({"name": "laptop", "axes": {"gamma": [0.3, 0.5]}})
    {'name': 'laptop', 'axes.gamma': [0.3, 0.5]}
    """
    found: dict[str, object] = {}
    for key, entry in table.items():
        if isinstance(entry, Mapping):
            found |= dotted(cast("Mapping[str, object]", entry), f"{prefix}{key}.")
        else:
            found[prefix + key] = entry
    return found


def _write_table(plain: Mapping[str, object], path: tuple[str, ...], lines: list[str]) -> None:
    tables: list[tuple[str, Mapping[str, object]]] = []
    for key, found in plain.items():
        if isinstance(found, Mapping) and isinstance(key, str):
            tables.append((key, found))
        elif found is not None:
            lines.append(_item(key, found, path))
    for key, table in tables:
        inner = (*path, key)
        lines += ["", f"[{'.'.join(map(_key, inner))}]"]
        _write_table(table, inner, lines)


def _item(key: object, found: object, path: tuple[str, ...]) -> str:
    if not isinstance(key, str):
        raise InputError(f"TOML key {key!r} {_under(path)}: expected text")
    return f"{_key(key)} = {_inline(found, (*path, key))}"


def _inline(found: object, path: tuple[str, ...]) -> str:
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, str):
        return _text(found)
    if isinstance(found, Integral):
        return str(int(found))
    if isinstance(found, Real):
        return repr(float(found))  # The shortest text that reads back as the same float.
    if isinstance(found, Mapping):
        items = [_item(key, x, path) for key, x in found.items() if x is not None]
        return "{ " + ", ".join(items) + " }" if items else "{}"
    if isinstance(found, Sequence) and not isinstance(found, bytes | bytearray):
        return "[" + ", ".join(_inline(x, path) for x in found) + "]"
    one_line = " ".join(repr(found).split())
    raise InputError(
        f"TOML cannot hold {one_line} {_under(path)}: expected text, a number, true or false, "
        "a list or a table"
    )


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    return '"' + "".join(_character(c) for c in text) + '"'


def _character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        raise InputError(f"TOML cannot hold the half of a character U+{code:04X}")
    return f"\\u{code:04X}" if code < 0x20 or code == 0x7F else character


def _under(path: tuple[str, ...]) -> str:
    return f"under {'.'.join(path)!r}" if path else "at the top"

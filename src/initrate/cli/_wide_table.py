"""Tables with a row a tensor: whole where there is room, narrowed in a narrow terminal."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from itertools import takewhile

_WORDS_WIDTH = 28
"""Columns that the words of the last column have at least, if they need them."""
_NAME_WIDTH = 18
"""Columns that names have at least; longer parts of a name are broken."""


def print_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], spare: Sequence[str] = ()
) -> None:
    """Print a table; columns in which nothing stands are left out.

    In a terminal that is too narrow, what all names begin with is said once, below; then the
    columns in `spare` are left out, the least needed first, and a note says which; then names are
    folded at their dots. Without `spare`, and where no terminal is at the other end, the table is
    whole.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from initrate.cli._output import show

    used = [k for k in range(len(head)) if any(row[k] for row in rows)]
    if not rows or not used:
        return
    columns = shutil.get_terminal_size().columns
    notes: list[str] = []
    narrow = bool(spare) and _is_terminal()
    if narrow and _needed(head, rows, used) > columns:
        prefix = common_prefix([row[0] for row in rows])
        rows = [(row[0].removeprefix(prefix), *row[1:]) for row in rows]
        kept = _that_fit(head, rows, used, spare, columns)
        left_out = [head[k] for k in used if k not in kept]
        used = kept
        if left_out:
            notes += [f"Left out for want of width: {', '.join(left_out)}; --json has all."]
        notes += [f"All names begin with {prefix}"] if prefix else []
    widths = {k: _width(head, rows, k) for k in used}
    first, last = used[0], used[-1]
    # The last column has words, which may be put below each other; numbers stay whole.
    beside = columns - sum(widths[k] + 3 for k in used[:-1]) - 4
    widths[last] = min(widths[last], max(_WORDS_WIDTH, beside))
    if narrow:
        room = columns - sum(widths[k] + 3 for k in used[1:]) - 4
        widths[first] = min(widths[first], max(_NAME_WIDTH, room))
    table = Table(box=SIMPLE_HEAD)
    for k in used:
        table.add_column(head[k], width=widths[k], overflow="fold")
    for row in rows:
        name = folded(row[first], widths[first])
        table.add_row(name, *(row[k] for k in used[1:]))
    show(table, *map(Text, notes))


def _that_fit(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    used: Sequence[int],
    spare: Sequence[str],
    columns: int,
) -> list[int]:
    kept = list(used)
    for name in spare:
        if _needed(head, rows, kept) > columns:
            kept = [k for k in kept if head[k] != name]
    return kept


def common_prefix(names: Sequence[str]) -> str:
    """Return the parts, up to a dot, that all of several names begin with.

    >>> common_prefix(["model.embed.weight", "model.layers.*.fc.weight"]), common_prefix(["a.b"])
    ('model.', '')
    """
    if len(names) < 2:
        return ""
    by_place = zip(*(name.split(".")[:-1] for name in names), strict=False)
    common = takewhile(lambda parts: len(set(parts)) == 1, by_place)
    return "".join(f"{parts[0]}." for parts in common)


def folded(name: str, width: int) -> str:
    """Return a dotted name in lines of at most `width`, if its parts allow that.

    >>> folded("encoder.layers.*.attention.weight \u00d712", 20).splitlines()
    ['encoder.layers.*.', '  attention.weight', '  \u00d712']
    """
    from rich.cells import cell_len

    if cell_len(name) <= width:
        return name
    lines = [""]
    for part in re.split(r"(?<=\.)|(?=[# ])", name):
        if lines[-1].strip() and cell_len(lines[-1] + part) > width:
            lines.append(f"  {part.lstrip()}")
        else:
            lines[-1] += part
    return "\n".join(lines)


def _is_terminal() -> bool:
    """Whether somebody reads in columns: a file or a pipe has no width."""
    return sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()


def _width(head: Sequence[str], rows: Sequence[Sequence[str]], k: int) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, (head[k], *(row[k] for row in rows))))


def _needed(head: Sequence[str], rows: Sequence[Sequence[str]], used: Sequence[int]) -> int:
    """The width in which names are whole, and the words of the last column have some room."""
    words = min(_width(head, rows, used[-1]), _WORDS_WIDTH)
    return sum(_width(head, rows, k) + 3 for k in used[:-1]) + words + 4

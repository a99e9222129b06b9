"""Tables of a plan or an audit: HTML for notebooks, and rows gathered over the layers."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from initrate.rule._record import WeightRecord

_MOST_ROWS = 2000
_OPEN_ROWS = 40
_NUMBER = re.compile(r"(?<![^.])\d+(?=[.#]|$)")
# Some pages do not hand their colours down to tables.
_STYLE = 'style="color:inherit;font:inherit;text-align:left"'
R = TypeVar("R")


def pattern_of(name: str) -> str:
    """Return the name with the numbers of layers and experts left out.

    >>> pattern_of("h.11.attn.c_attn.weight#query"), pattern_of("fc1.weight"), pattern_of("0.bias")
    ('h.*.attn.c_attn.weight#query', 'fc1.weight', '*.bias')
    """
    return _NUMBER.sub("*", name)


def gathered(keyed: Iterable[tuple[str, object, R]]) -> Iterator[tuple[str, list[R]]]:
    """Yield what stands for one row of a table: the name or its pattern, and the rows behind it.

    `keyed` has the name of each row, what must be equal for rows to go together, and the row. A
    pattern with one row behind it goes by the row's own name.

    >>> rows = [("h.0.w", 1, "a"), ("h.1.w", 1, "b"), ("h.2.w", 2, "c")]
    >>> list(gathered(rows))
    [('h.*.w', ['a', 'b']), ('h.2.w', ['c'])]
    """
    groups: dict[tuple[str, object], list[tuple[str, R]]] = {}
    for name, equal, row in keyed:
        groups.setdefault((pattern_of(name), equal), []).append((name, row))
    for (pattern, _), found in groups.items():
        yield (pattern if len(found) > 1 else found[0][0]), [row for _, row in found]


def shape_text(record: WeightRecord) -> str:
    """Return the shape of a tensor or of its part, as people read it.

    >>> from initrate.rule import Slice
    >>> shape_text(WeightRecord("c_attn", (64, 192), part="key", where=Slice(1, 64, 64)))
    '64 × 64'
    """
    return " × ".join(map(str, shape_of(record))) or "scalar"


def shape_of(record: WeightRecord) -> list[int]:
    """Return the shape of a tensor or of its part; one block has no number of blocks."""
    sides = list(record.part_shape)
    if record.where is not None and record.where.period is None:
        del sides[record.where.axis]
    return sides


def plain_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, below: str = "") -> str:
    """Return a table as text, for `print`.

    >>> print(plain_table(["name", "std"], [["wte", "0.02"]], below="1 tensor"))
    name  std
    wte   0.02
    1 tensor
    """
    lines = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    text = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return "\n".join([*text, below] if below else text)


def span(numbers: Sequence[float], digits: str = ".4g") -> str:
    """Return one number, or the smallest and the largest of several, as people read them.

    >>> span([0.02, 0.02]), span([0.01991, 0.02009])
    ('0.02', '0.0199 to 0.0201')
    """
    if len({format(number, digits) for number in numbers}) > 1:
        digits = digits.replace(".4g", ".3g")
    texts = [format(number, digits) for number in numbers]
    if len(set(texts)) <= 1:
        return texts[0] if texts else ""
    # What is not a number has no order: it is shown whatever else there is.
    odd = [text for number, text in zip(numbers, texts, strict=True) if number != number]
    ordered = [number for number in numbers if number == number]
    if odd:
        return " or ".join(dict.fromkeys((*odd, *texts)))
    return f"{format(min(ordered), digits)} to {format(max(ordered), digits)}"


def html_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    marked: Sequence[bool] = (),
    notes: Sequence[str] = (),
) -> str:
    """Return an HTML table: the marked rows first and in bold, a long rest folded.

    Colours are left to the page, so that a dark one stays readable. Everything is escaped.

    >>> html_table(["name"], [["<b>"]]).partition("<thead>")[2]
    '<tr><th>name</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    marks = [*marked, *[False] * (len(rows) - len(marked))]
    first = [row for row, mark in zip(rows, marks, strict=True) if mark]
    rest = [row for row, mark in zip(rows, marks, strict=True) if not mark]
    listed = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    parts = [
        f"<p><strong>{html.escape(title)}</strong></p>" if title else "",
        f"<ul>{listed}</ul>" if notes else "",
        _table(head, first, bold=True) if first else "",
    ]
    shown = rest[:_MOST_ROWS]
    if len(rest) > len(shown):
        parts.append(f"<p>{len(rest) - len(shown)} more rows are not shown.</p>")
    if shown or not first:
        body = _table(head, shown, bold=False)
        if len(rest) > _OPEN_ROWS:
            kind = "further rows" if first else "rows"
            body = f"<details><summary>{len(rest)} {kind}</summary>{body}</details>"
        parts.append(body)
    return "".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, bold: bool) -> str:
    def line(cells: Sequence[str]) -> str:
        texts = (html.escape(cell) for cell in cells)
        return "".join(f"<td><strong>{x}</strong></td>" if bold else f"<td>{x}</td>" for x in texts)

    heads = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{line(row)}</tr>" for row in rows)
    return f"<table {_STYLE}><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"

"""A table for notebooks: plain HTML, everything in it escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence

_MOST_ROWS = 400


def html_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, notes: Sequence[str] = ()
) -> str:
    """Return an HTML table; of a very long one the first rows, and how many were left out.

    >>> html_table(["name"], [["<b>"]])
    '<table><thead><tr><th>name</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """

    def line(cells: Sequence[str], kind: str) -> str:
        return "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in cells)

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        notes = (*notes, f"{len(rows) - _MOST_ROWS} more rows are not shown.")
    below = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return f"<table><thead><tr>{line(head, 'th')}</tr></thead><tbody>{body}</tbody></table>{below}"

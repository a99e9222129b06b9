"""The summary in a terminal: a row a point of the grid, with how far its seeds agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from initrate.cli._board import Row
from initrate.report import SEEN_THRESHOLD, label_style, share, text_of
from initrate.statistics import median_coverage

_MAXIMA = {
    "max_over_lr_inferential_accuracy": "composed: maximum",
    "max_over_lr_symmetric_accuracy": "mirrored: maximum",
}
"""Under best-lr: means over seeds of the best of all rates, for each answer apart."""

LEVEL = 0.95
"""From this coverage on, a range of order statistics is called an interval."""


_FOLDED = {
    "words": "",
    "median_symmetric": "mirrored: median",
    "seeds": "seeds",
}
"""What is left out where a terminal is too narrow, the least needed first, and what it is.

What the ranges are is not lost: it is said once, below the table.
"""


def summary_table(rows: Sequence[Row], axes: Sequence[str], width: int | None = None) -> Table:
    """Return the summary as a table: seeds, labels, and the composed share with its spread.

    Under best-lr the labels and medians are of the rate with the lowest training loss; what is
    largest over rates stands beside them and is called a maximum. Where `width` is not enough for
    a row a line, the least needed is left out, and a note says so.
    """
    keys = list(_FOLDED)
    if not any(_known(row, "median_symmetric") for row in rows):
        keys.remove("median_symmetric")
    steps = [_table(rows, axes, frozenset(keys[:k])) for k in range(len(keys) + 1)]
    n_left_out = 0
    if width is not None:
        fitting = [k for k, table in enumerate(steps) if _needed(table) <= width]
        n_left_out = fitting[0] if fitting else len(keys)
    table = steps[n_left_out]
    notes = [_UNFIT_NOTE] if any(is_unfit(row) for row in rows) else []
    notes += [_MAXIMA_NOTE] if any(_known(row, key) for row in rows for key in _MAXIMA) else []
    left_out = keys[:n_left_out]
    ranges = dict.fromkeys(_range_words(spread(row)) for row in rows)
    if "words" in left_out and (told := [words for words in ranges if words]):
        notes.append(f"In brackets: {'; '.join(told)}.")
    words = ", ".join(_FOLDED[key] for key in left_out if _FOLDED[key])
    if words:
        notes.append(f"Left out for want of width: {words}; the report and --json have all.")
    if notes:
        table.caption, table.caption_justify = " ".join(notes), "left"
    return table


_UNFIT_MARK = "*"
_UNFIT_NOTE = (
    f"{_UNFIT_MARK} Did not fit: the median of seen pairs is below {SEEN_THRESHOLD:.2f}, and the "
    "share says nothing of composing."
)
_MAXIMA_NOTE = (
    "A maximum is the best learning rate for this answer alone, averaged over seeds: two maxima "
    "may come from different runs. Labels and medians are of the learning rate with the lowest "
    "training loss."
)


def _needed(table: Table) -> int:
    """The width in which no row needs a second line."""
    console = Console(width=10_000)
    return Measurement.get(console, console.options, table).maximum


def _table(rows: Sequence[Row], axes: Sequence[str], without: frozenset[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in axes:
        table.add_column(name, justify="right", no_wrap=True)
    if "seeds" not in without:
        table.add_column("seeds", justify="right")
    table.add_column("labels")
    table.add_column("composed: median", justify="right")
    extra = {"median_symmetric": "mirrored: median", **_MAXIMA}
    extra = {key: head for key, head in extra.items() if any(_known(row, key) for row in rows)}
    extra = {key: head for key, head in extra.items() if key not in without}
    for head in extra.values():
        table.add_column(head, justify="right")
    for row in rows:
        labels = row.get("labels")
        counts = labels if isinstance(labels, Mapping) else {}
        words = ", ".join(f"{n} {label_style(str(label)).name}" for label, n in counts.items())
        cells = [text_of(row.get(name)) for name in axes]
        cells += [] if "seeds" in without else [text_of(row.get("n_seeds"))]
        shares = (_marked(row, key) for key in extra)
        table.add_row(*cells, words, _median(row, without), *shares)
    return table


def _median(row: Row, without: frozenset[str]) -> str:
    median, found = _marked(row, "median"), spread(row)
    if "words" in without:
        found = found.partition(",")[0] if " to " in found else ""
    return f"{median} ({found})" if found else median


def _range_words(found: str) -> str:
    """What a range is, without its ends."""
    return found.partition(", ")[2] if " to " in found else ""


def spread(row: Row) -> str:
    """Return how far the seeds of a row lie apart, in words that claim no more than they show.

    >>> spread({"n_seeds": 1, "low": None, "high": None})
    'one seed'
    >>> spread({"n_seeds": 3, "low": 0.4, "high": 1.0, "coverage": 0.75})
    '0.40 to 1.00, range of 3 seeds, covers 75 %'
    >>> spread({"n_seeds": 4, "low": 0.4, "high": 1.0, "coverage": None})
    '0.40 to 1.00, range of 4 runs'
    >>> spread({"n_seeds": 9, "low": 0.4, "high": 1.0, "coverage": 0.961})
    '0.40 to 1.00, 96% interval'
    """
    n_seeds = row.get("n_seeds")
    if not isinstance(n_seeds, int) or n_seeds < 2:
        return "one seed"
    if not (_known(row, "low") and _known(row, "high")):
        return "no share"
    words = f"{_share(row, 'low')} to {_share(row, 'high')}"
    coverage = row.get("coverage", median_coverage(n_seeds))
    if not isinstance(coverage, float):
        # Of crossed seeds nothing is covered.
        return f"{words}, range of {n_seeds} runs"
    if coverage < LEVEL:
        # Rounded down: a coverage is never told larger than it is.
        return f"{words}, range of {n_seeds} seeds, covers {int(coverage * 100)} %"
    return f"{words}, {int(coverage * 100)}% interval"


def is_unfit(row: Row) -> bool:
    """Return whether most seeds of a row did not learn their seen pairs: maps hatch such cells.

    >>> is_unfit({"median_seen": 0.31}), is_unfit({"median_seen": 0.97}), is_unfit({})
    (True, False, False)
    """
    seen = row.get("median_seen")
    return isinstance(seen, int | float) and seen < SEEN_THRESHOLD


def _marked(row: Row, column: str) -> str:
    """The share, with a mark that takes its room in every row where the runs did not fit."""
    found = _share(row, column)
    return f"{found}{_UNFIT_MARK}" if is_unfit(row) and _known(row, column) else found


def _known(row: Row, column: str) -> bool:
    return isinstance(row.get(column), int | float)


def _share(row: Row, column: str) -> str:
    found = row.get(column)
    return share(found if isinstance(found, int | float) else None)

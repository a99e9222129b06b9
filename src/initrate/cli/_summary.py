"""The summary in a terminal: a row a point of the grid, with how far its seeds agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from initrate.cli._board import Row
from initrate.report import label_style, share, text_of
from initrate.statistics import median_coverage

_MAXIMA = {
    "max_over_lr_inferential_accuracy": "composed: maximum",
    "max_over_lr_symmetric_accuracy": "mirrored: maximum",
}
"""Under best-lr: means over seeds of the best of all rates, for each answer apart."""

LEVEL = 0.95
"""From this coverage on, a range of order statistics is called an interval."""


def summary_table(rows: Sequence[Row], axes: Sequence[str]) -> Table:
    """Return the summary as a table: seeds, labels, and the composed share with its spread.

    Under best-lr the labels and medians are of the rate with the lowest training loss; what is
    largest over rates stands beside them and is called a maximum.
    """
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in axes:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("seeds", justify="right")
    table.add_column("labels")
    table.add_column("composed: median", justify="right")
    extra = {"median_symmetric": "mirrored: median", **_MAXIMA}
    extra = {key: head for key, head in extra.items() if any(_known(row, key) for row in rows)}
    for head in extra.values():
        table.add_column(head, justify="right")
    if any(key in extra for key in _MAXIMA):
        table.caption = (
            "A maximum is the best learning rate for this answer alone, averaged over seeds: two "
            "maxima may come from different runs. Labels and medians are of the learning rate "
            "with the lowest training loss."
        )
        table.caption_justify = "left"
    for row in rows:
        labels = row.get("labels")
        counts = labels if isinstance(labels, Mapping) else {}
        words = ", ".join(f"{n} {label_style(str(label)).name}" for label, n in counts.items())
        cells = [text_of(row.get(name)) for name in axes]
        cells += [text_of(row.get("n_seeds")), words, f"{_share(row, 'median')} ({spread(row)})"]
        table.add_row(*cells, *(_share(row, key) for key in extra))
    return table


def spread(row: Row) -> str:
    """Return how far the seeds of a row lie apart, in words that claim no more than they show.

    >>> spread({"n_seeds": 1, "low": None, "high": None})
    'one seed'
    >>> spread({"n_seeds": 3, "low": 0.4, "high": 1.0, "coverage": 0.75})
    '0.40 to 1.00, range of 3 seeds'
    >>> spread({"n_seeds": 9, "low": 0.4, "high": 1.0, "coverage": 0.961})
    '0.40 to 1.00, 96% interval'
    """
    n_seeds = row.get("n_seeds")
    if not isinstance(n_seeds, int) or n_seeds < 2:
        return "one seed"
    if not (_known(row, "low") and _known(row, "high")):
        return "no share"
    words = f"{_share(row, 'low')} to {_share(row, 'high')}"
    found = row.get("coverage")
    coverage = found if isinstance(found, float) else median_coverage(n_seeds)
    if coverage < LEVEL:
        return f"{words}, range of {n_seeds} seeds"
    return f"{words}, {int(coverage * 100)}% interval"


def _known(row: Row, column: str) -> bool:
    return isinstance(row.get(column), int | float)


def _share(row: Row, column: str) -> str:
    found = row.get(column)
    return share(found if isinstance(found, int | float) else None)

"""The diagram in a terminal: a letter and a colour for each run, a table for each grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from initrate.cli._board import Board, Row
from initrate.report import label_style, share, text_of

_COLOURS = {
    "composed": "bold blue",
    "composed_with_mirrored_exception": "bold cyan",
    "mirrored": "bold yellow",
    "mirrored_lookup": "bold red",
    "other": "bold magenta",
    "data_memorized": "yellow",
    "diverged": "red",
}
"""The terminal's own colours, so that they suit its background; the letter says the same."""

WAITING, FAILED = "·", "?"


def diagram(board: Board) -> RenderableType:
    """Return the diagram: the first axis across, the second down, a table for each of the rest."""
    axes = dict(board.config.axes)
    across, down, *further = [*axes, None, None][: max(len(axes), 2)]
    tables: list[RenderableType] = []
    for rest in itertools.product(*(axes[name] for name in further)):
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        corner = f"{down or ''} \\ {across}" if across and down else (across or "")
        table.add_column(corner, justify="right", no_wrap=True)
        for found in axes[across] if across else ("all",):
            table.add_column(text_of(found), justify="center", no_wrap=True)
        for row in axes[down] if down else ((),):
            head = text_of(row) if down else ""
            columns = axes[across] if across else ((),)
            places = [_place((c, across), (row, down), rest) for c in columns]
            table.add_row(head, *(_marks(board, board.places[place]) for place in places))
        if further:
            words = zip(further, rest, strict=True)
            tables.append(Text(", ".join(f"{name} {text_of(found)}" for name, found in words)))
        tables.append(table)
    return Group(*tables, legend(board))


def legend(board: Board) -> Text:
    """Return what the letters stand for, of those that occur, with how often they do."""
    parts: list[Text] = []
    for label, n in board.labels().items():
        style = label_style(label)
        text = Text(style.letter, style=_COLOURS.get(label, ""))
        parts.append(text + Text(f" {style.name} ({n})", style="default not bold"))
    if board.config.lrs:
        parts.append(Text("a letter a seed: the rate with the lowest training loss", style="dim"))
    if board.running:
        parts.append(Text("0-9 in training: tenths of composed answers so far", style="dim"))
    if board.failed:
        parts.append(Text(f"{FAILED} failed ({len(board.failed)})"))
    n_waiting = len(board.points) - len(board.done) - len(board.running) - len(board.failed)
    if n_waiting:
        parts.append(Text(f"{WAITING} to come ({n_waiting})", style="dim"))
    return Text("   ").join(parts)


def summary_table(rows: Sequence[Row], axes: Sequence[str]) -> Table:
    """Return the summary as a table: seeds, labels, and the composed share with its interval."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in axes:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("seeds", justify="right")
    table.add_column("labels")
    table.add_column("composed: median (interval)", justify="right", no_wrap=True)
    mirrored = any(row.get("median_symmetric") is not None for row in rows)
    if mirrored:
        table.add_column("mirrored: median", justify="right")
    for row in rows:
        labels = row.get("labels")
        counts = labels if isinstance(labels, Mapping) else {}
        words = ", ".join(f"{n} {label_style(str(label)).name}" for label, n in counts.items())
        interval = f"{_share(row, 'low')} to {_share(row, 'high')}"
        cells = [text_of(row.get(name)) for name in axes]
        cells += [text_of(row.get("n_seeds")), words, f"{_share(row, 'median')} ({interval})"]
        table.add_row(*cells, *([_share(row, "median_symmetric")] if mirrored else []))
    return table


def _share(row: Row, column: str) -> str:
    found = row.get(column)
    return share(found if isinstance(found, int | float) else None)


def _place(
    across: tuple[object, str | None], down: tuple[object, str | None], rest: tuple[object, ...]
) -> tuple[object, ...]:
    """The values of the axes in their order; an axis that there is none of has none."""
    return (*(found for found, name in (across, down) if name), *rest)


def _marks(board: Board, cells: Sequence[str]) -> Text:
    """A mark a seed; under best-lr it is that of the rate with the lowest training loss."""
    n_lrs = len(board.config.lrs) or 1
    text = Text()
    for first in range(0, len(cells), n_lrs):
        text += _mark(board, cells[first : first + n_lrs])
    return text


def _mark(board: Board, of_seed: Sequence[str]) -> Text:
    running = [board.running[cell] for cell in of_seed if cell in board.running]
    if all(cell in board.done for cell in of_seed):
        label = str(min((board.done[cell] for cell in of_seed), key=_loss)["label"])
        return Text(label_style(label).letter, style=_COLOURS.get(label, ""))
    if running:
        found = running[0].get("inferential_accuracy")
        known = isinstance(found, int | float)
        return Text(str(min(int(found * 10), 9)) if known else WAITING, style="dim")
    return Text(FAILED if board.failed.intersection(of_seed) else WAITING, style="dim")


def _loss(row: Row) -> float:
    found = row.get("final_training_loss")
    if row.get("diverged") or not isinstance(found, int | float) or not math.isfinite(found):
        return math.inf
    return found

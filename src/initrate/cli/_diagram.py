"""The diagram in a terminal: a letter and a colour for each run, a table for each grid."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from initrate.cli._board import Board, Row
from initrate.report import label_style, text_of

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
    for label, n in _shown_labels(board).items():
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


def _shown_labels(board: Board) -> dict[str, int]:
    """How often each letter stands in the diagram: under best-lr, once for all rates of a seed."""
    n_lrs = len(board.config.lrs) or 1
    counts: Counter[str] = Counter()
    for cells in board.places.values():
        for first in range(0, len(cells), n_lrs):
            of_seed = cells[first : first + n_lrs]
            if all(cell in board.done for cell in of_seed):
                counts[_chosen(board, of_seed)] += 1
    return dict(counts.most_common())


def _chosen(board: Board, of_seed: Sequence[str]) -> str:
    return str(min((board.done[cell] for cell in of_seed), key=_loss)["label"])


def _mark(board: Board, of_seed: Sequence[str]) -> Text:
    running = [board.running[cell] for cell in of_seed if cell in board.running]
    if all(cell in board.done for cell in of_seed):
        label = _chosen(board, of_seed)
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

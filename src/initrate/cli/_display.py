"""The display of a running study: a live diagram in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from initrate.cli._board import Board
from initrate.cli._diagram import diagram
from initrate.cli._output import tell, wide_enough
from initrate.cli._progress import Progress
from initrate.files import shown
from initrate.report import count_of, label_style
from initrate.study import (
    BucketDone,
    BucketFailed,
    BucketProgress,
    Event,
    StudyConfig,
    StudyStarted,
)

PLAIN_SECONDS = 10.0
"""Where there is no terminal, a line of progress comes at most this often."""


@contextmanager
def display(config: StudyConfig) -> Iterator[Callable[[Event], None]]:
    """Yield what to tell events to; standard error shows them while the block runs."""
    progress = Progress(Board(config))
    console = wide_enough(Console(stderr=True, highlight=False))
    if not console.is_terminal:
        yield PlainLines(progress).take
        return
    live = Live(
        get_renderable=lambda: _picture(progress),
        console=console,
        refresh_per_second=4,
        transient=True,
    )

    def take(event: Event) -> None:
        progress.take(event)
        if isinstance(event, StudyStarted):
            for note in event.notes:
                console.print(f"note: {note}", markup=False)

    with live:
        yield take


@dataclass(slots=True)
class PlainLines:
    """Writes lines of progress on standard error, for logs."""

    progress: Progress
    last: float = 0.0

    def take(self, event: Event) -> None:
        """Take in an event, and write what it is worth a line."""
        self.progress.take(event)
        if isinstance(event, StudyStarted):
            n_buckets = len(event.plan.buckets)
            self._write(
                f"{shown(event.folder)}: {count_of(event.n_cells, 'run')} in "
                f"{count_of(n_buckets, 'bucket')}, {event.n_done} done already"
                f"{_going_on(event.n_begun)}"
            )
            for note in event.notes:
                self._write(f"note: {note}")
        elif isinstance(event, BucketDone):
            labels = self.progress.board.labels().items()
            words = ", ".join(f"{n} {label_style(label).name}" for label, n in labels)
            self._write(f"{self.progress.line()}: {words}")
        elif isinstance(event, BucketFailed):
            self._write(f"bucket {event.index + 1} of {event.n_buckets} failed: {event.error}")
        elif isinstance(event, BucketProgress) and time.monotonic() - self.last > PLAIN_SECONDS:
            self._write(self.progress.line())

    def _write(self, line: str) -> None:
        self.last = time.monotonic()
        tell(line)


def _going_on(n_begun: int) -> str:
    """What is kept of buckets that were interrupted: no run of theirs is done, and none is lost."""
    if not n_begun:
        return ""
    if n_begun == 1:
        return "; 1 bucket goes on from its checkpoint"
    return f"; {n_begun} buckets go on from their checkpoints"


def _picture(progress: Progress) -> RenderableType:
    return Group(diagram(progress.board), Text(), Text(progress.line()))

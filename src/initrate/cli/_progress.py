"""What the events of a running study come to: the board, the pace, the speed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from initrate.cli._board import Board
from initrate.report import count_of, duration
from initrate.study import (
    BucketDone,
    BucketFailed,
    BucketProgress,
    BucketStarted,
    Event,
    StudyStarted,
)


@dataclass(slots=True)
class Pace:
    """How fast the study goes, from the share of its operations that is done."""

    began: float = field(default_factory=time.monotonic)
    share_before: float = 0.0
    """What was done before this process began."""

    def words(self, share_done: float, *, now: float | None = None) -> str:
        """Return the time gone and, once it can be told, the time left.

        >>> Pace(began=0.0, share_before=0.5).words(0.75, now=60.0)
        '1 min 0 s gone, about 1 min 0 s left'
        """
        gone = (time.monotonic() if now is None else now) - self.began
        here = share_done - self.share_before
        words = f"{duration(gone)} gone"
        if here <= 0 or share_done >= 1:
            return words
        return f"{words}, about {duration(gone / here * (1 - share_done))} left"


@dataclass(slots=True)
class Speed:
    """Steps a second, all models of the bucket together, from its second logged step on."""

    first: BucketProgress | None = None
    last: BucketProgress | None = None

    def take(self, event: BucketProgress) -> None:
        """Take in a logged step; those of another bucket begin anew."""
        if self.first is None or self.first.bucket != event.bucket:
            self.first = event
        self.last = event

    def words(self) -> str:
        """Return the speed, or nothing where it is not known yet."""
        if self.first is None or self.last is None or self.last.seconds <= self.first.seconds:
            return ""
        steps = (self.last.step - self.first.step) * len(self.last.scores)
        return f"{steps / (self.last.seconds - self.first.seconds):,.0f} model steps a second"


@dataclass(slots=True)
class Progress:
    """The state of a running study, as its events tell it."""

    board: Board
    pace: Pace = field(default_factory=Pace)
    speed: Speed = field(default_factory=Speed)
    bucket: str = ""
    resumes: bool = False
    """Whether the bucket goes on from a checkpoint and has told no step yet."""

    def take(self, event: Event) -> None:
        """Take in an event."""
        if isinstance(event, StudyStarted):
            self._finish(event)
            self.pace = Pace(share_before=self.board.share_done)
        elif isinstance(event, BucketStarted):
            self.bucket = f"bucket {event.index + 1} of {event.n_buckets}"
            self.bucket += " (from its checkpoint)" if event.resumed else ""
            self.resumes = event.resumed
        elif isinstance(event, BucketProgress):
            self.speed.take(event)
            before = self.board.share_done
            for cell, scores in event.scores.items():
                self.board.progress(cell, scores, event.step / event.steps)
            if self.resumes:
                # What the checkpoint held was not done in this time, and says nothing of the pace.
                self.pace.share_before += self.board.share_done - before
                self.resumes = False
        elif isinstance(event, BucketDone):
            self._finish(event)
        elif isinstance(event, BucketFailed):
            for cell in event.cells:
                self.board.fail(cell)

    def line(self) -> str:
        """Return where the study stands, in one line."""
        board = self.board
        parts = [
            f"{len(board.done)} of {count_of(len(board.points), 'run')}",
            f"{board.share_done:.0%}",
            self.bucket if len(board.done) < len(board.points) else "",
            self.speed.words(),
            self.pace.words(board.share_done),
        ]
        return ", ".join(part for part in parts if part)

    def _finish(self, event: StudyStarted | BucketDone) -> None:
        for row in event.rows:
            self.board.finish(row)

"""What a running study tells: events, so that it need not know who shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from initrate.study._config import StudyConfig
from initrate.study._execution import ExecutionPlan

Scalars = Mapping[str, float | int | None]


@dataclass(frozen=True, slots=True)
class StudyStarted:
    """The study is about to be run, or gone on with."""

    folder: Path
    config: StudyConfig
    plan: ExecutionPlan
    n_done: int
    n_cells: int
    rows: Sequence[Mapping[str, object]]
    """The rows of the cells that are trained already, as `Store.cells` has them."""
    notes: tuple[str, ...] = ()
    """What a reader of the results should know, a line each: `initrate.tasks.lookup_note`."""
    n_begun: int = 0
    """Buckets that are begun and go on from their checkpoints."""


@dataclass(frozen=True, slots=True)
class BucketStarted:
    """A bucket is about to be trained; `index` counts from 0."""

    bucket: str
    index: int
    n_buckets: int
    cells: Sequence[str]
    resumed: bool
    """Whether it goes on from a checkpoint."""


@dataclass(frozen=True, slots=True)
class BucketProgress:
    """A bucket came to a logged step."""

    bucket: str
    index: int
    n_buckets: int
    step: int
    steps: int
    seconds: float
    """Since this process began the bucket."""
    scores: Mapping[str, Scalars]
    """The scalars of the small splits, by cell."""


@dataclass(frozen=True, slots=True)
class BucketDone:
    """A bucket is trained and its part is on the disk."""

    bucket: str
    index: int
    n_buckets: int
    seconds: float
    rows: Sequence[Mapping[str, object]]
    """The rows of its cells, as `Store.cells` has them: with fit and label."""
    n_done: int
    n_cells: int


@dataclass(frozen=True, slots=True)
class BucketFailed:
    """A bucket could not be trained; the study goes on with the others."""

    bucket: str
    index: int
    n_buckets: int
    cells: Sequence[str]
    error: str


@dataclass(frozen=True, slots=True)
class StudyDone:
    """The run has ended: all cells are trained, but those of buckets that failed."""

    folder: Path
    n_done: int
    n_cells: int
    n_failed: int


Event = StudyStarted | BucketStarted | BucketProgress | BucketDone | BucketFailed | StudyDone

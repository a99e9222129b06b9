"""What a task gives the laboratory: training examples, evaluation splits, scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Split:
    """Sequences evaluated together; every array has one row a sequence.

    `candidates` holds the possible answers by name ("composed", "mirrored"), `columns` what each
    sequence is made of ("key", "position", "pair"), so that scores can be taken by each.
    """

    name: str
    tokens: Integers
    """[n_sequences, length]"""
    targets: Integers
    """[n_sequences], the designated answer at the last position"""
    columns: Mapping[str, Integers] = field(default_factory=dict)
    candidates: Mapping[str, Integers] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Score:
    """What one model's answers to all splits come to: plain numbers and rows of counts."""

    scalars: Mapping[str, float | int | None]
    """`training_accuracy`, `seen_accuracy`, `inferential_accuracy`, `symmetric_accuracy`,
    `probe_accuracy`, `commutes`, `n_unseen` …: None where the task has no such answer."""
    counts: Sequence[Mapping[str, object]]
    """Rows `split, pair, by, index, n, correct, composed, mirrored`."""
    shifts: Sequence[Mapping[str, object]]
    """Rows `split, pair, shift, n`: the histogram of prediction minus key."""


class Task(Protocol):
    """A task of the laboratory. All arrays are NumPy; the same seeds give the same arrays."""

    @property
    def vocabulary(self) -> int: ...

    @property
    def length(self) -> int: ...

    def training_batches(
        self, *, pool_seed: int, order_seed: int, first_step: int, n_steps: int, batch: int
    ) -> tuple[Integers, Integers]:
        """Return tokens [n_steps, batch, length] and targets [n_steps, batch] of these steps."""
        ...

    def evaluation(self, *, seed: int, pool_seed: int, exhaustive: bool) -> tuple[Split, ...]:
        """Return the splits to answer: all (key, position) cells, or a small sample for curves."""
        ...

    def score(self, splits: Sequence[Split], predictions: Sequence[Integers]) -> Score:
        """Return the score of one model's predictions, one array [n_sequences] a split."""
        ...

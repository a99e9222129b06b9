"""A bucket: models of equal shape, trained together as one batched program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from initrate.errors import InputError
from initrate.model import ModelConfig
from initrate.rule import Rule
from initrate.tasks import Score, Task
from initrate.training._config import LANE_FIELDS, Training


@dataclass(frozen=True, slots=True)
class Seeds:
    """The four seeds of a run: weights, data set, order of the data, evaluation sequences."""

    init: int = 0
    pool: int = 0
    order: int = 0
    evaluation: int = 0

    @classmethod
    def all(cls, seed: int) -> Seeds:
        """Return one number as all four seeds.

        >>> Seeds.all(3)
        Seeds(init=3, pool=3, order=3, evaluation=3)
        """
        return cls(seed, seed, seed, seed)


@dataclass(frozen=True, slots=True)
class Lane:
    """One model of a bucket."""

    cell: str
    """The id of the cell: 12 hex digits."""
    rule: Rule
    training: Training
    seeds: Seeds


@dataclass(frozen=True, slots=True)
class Bucket:
    """Models that share task, shape and every training field outside `LANE_FIELDS`."""

    task: Task
    model: ModelConfig
    lanes: tuple[Lane, ...]

    def __post_init__(self) -> None:
        if not self.lanes:
            raise InputError("a bucket without lanes: expected at least one model")
        first = shared_training(self.lanes[0].training)
        if any(shared_training(lane.training) != first for lane in self.lanes):
            raise InputError(
                "the lanes of a bucket differ in more than " + ", ".join(sorted(LANE_FIELDS))
            )


def shared_training(training: Training) -> Training:
    """Return the recipe with all that may differ inside a bucket set to its default."""
    default = Training()
    lane = {f.name: getattr(default, f.name) for f in fields(Training) if f.name in LANE_FIELDS}
    return replace(training, **lane)


@dataclass(frozen=True, slots=True)
class Execution:
    """How a bucket is run; it changes the speed and the last bits, not what is computed."""

    threads: int | None = None
    dtype: Literal["float32", "float64", "bfloat16"] = "float32"
    device: str = "cpu"
    tf32: bool = False
    checkpoint_seconds: float = 60.0


class Interrupted(Exception):
    """Training was asked to stop; the checkpoint, where one was wanted, has been written."""


@dataclass(frozen=True, slots=True)
class Progress:
    """An event of the running bucket: after every logged step."""

    step: int
    steps: int
    seconds: float
    """Since this process began the bucket."""
    scores: Sequence[Mapping[str, float | int | None]]
    """One mapping a lane, in lane order: the curve row of this step."""


@dataclass(frozen=True, slots=True)
class LaneResult:
    """All that came out of one lane."""

    cell: str
    score: Score
    """The exhaustive evaluation at the end."""
    curve: Sequence[Mapping[str, object]]
    """Rows `step, loss, training_loss, lr, gradient_norm` and the scalars of the small splits."""
    tensors: Sequence[Mapping[str, object]]
    """Rows `tensor, role, d_in, target_std, init_std, final_std, sigma_sqrt_d, init_norm,
    final_norm, update_norm` (the last: norm of final minus initial weights)."""
    scalars: Mapping[str, float | int | None]
    """`sum_lr, sum_lr_weight_decay, final_training_loss, block_to_skip`."""
    diverged: bool
    diverged_step: int | None


@dataclass(frozen=True, slots=True)
class BucketResult:
    """What `train` returns: a result a lane and the final weights, stacked."""

    lanes: tuple[LaneResult, ...]
    weights: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    """Canonical name -> [n_lanes, *shape]."""
    seconds: float = 0.0
    """Training and evaluation, all processes that had a part in it together."""

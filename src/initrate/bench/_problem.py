"""What every engine is given: the same models, weights, recipe and ready-made sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from initrate.bench._sizes import Size
from initrate.model import initialize
from initrate.rule import Rule
from initrate.tasks import Integers, Score, Split
from initrate.training import Bucket, Lane, Seeds, Training

OnRound = Callable[[Sequence[float]], bool]
"""What an engine calls after every round, with each model's mean loss: whether to go on."""

_N_BATCHES = 8
"""Different batches of a model; they come again in turn."""
_STEPS = 1_000_000
"""More than any benchmark takes: it ends when the rounds do."""


@dataclass(frozen=True, slots=True, eq=False)
class ReadyTask:
    """Sequences drawn beforehand, other ones for every order seed; one of them to evaluate.

    Targets are random, so that the loss never vanishes and gradients keep their size.
    """

    vocabulary: int
    tokens: Integers
    """[order seed, batch number, batch, length]"""
    targets: Integers
    """[order seed, batch number, batch]"""

    @property
    def length(self) -> int:
        """Return the tokens of a sequence."""
        return self.tokens.shape[-1]

    def training_batches(
        self, *, pool_seed: int, order_seed: int, first_step: int, n_steps: int, batch: int
    ) -> tuple[Integers, Integers]:
        """Return the batches of these steps."""
        chosen = np.arange(first_step, first_step + n_steps) % self.tokens.shape[1]
        return self.tokens[order_seed, chosen], self.targets[order_seed, chosen]

    def evaluation(self, *, seed: int, pool_seed: int, exhaustive: bool) -> tuple[Split, ...]:
        """Return a single sequence."""
        return (Split("training", self.tokens[0, 0, :1], self.targets[0, 0, :1]),)

    def score(self, splits: Sequence[Split], predictions: Sequence[Integers]) -> Score:
        """Return the accuracy, of which nothing is asked."""
        return Score(
            {"training_accuracy": float((predictions[0] == splits[0].targets).mean())}, (), ()
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """The models of a size, to be trained in rounds of `steps` steps each.

    >>> from initrate.bench import SIZES
    >>> tokens, targets = Problem(SIZES["laptop"], steps=5, threads=1).batch(0)
    >>> tokens.shape, targets.shape
    ((8, 256, 9), (8, 256))
    """

    size: Size
    steps: int
    threads: int
    bucket: Bucket = field(init=False, repr=False, compare=False)
    """The models as the engine of initrate takes them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "bucket", _bucket(self.size, self.steps))

    @property
    def training(self) -> Training:
        """Return the recipe, one for all models."""
        return self.bucket.lanes[0].training

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return the initial weights, canonical name -> [n_models, *shape]."""
        lanes = self.bucket.lanes
        return initialize(
            self.size.model,
            self.size.vocabulary,
            [lane.rule for lane in lanes],
            [lane.seeds.init for lane in lanes],
        )

    def batch(self, step: int) -> tuple[Integers, Integers]:
        """Return tokens [n_models, batch, length] and targets [n_models, batch] of a step."""
        drawn = [
            self.bucket.task.training_batches(
                pool_seed=lane.seeds.pool,
                order_seed=lane.seeds.order,
                first_step=step,
                n_steps=1,
                batch=self.size.batch,
            )
            for lane in self.bucket.lanes
        ]
        return np.stack([tokens[0] for tokens, _ in drawn]), np.stack([t[0] for _, t in drawn])


def _bucket(size: Size, steps: int) -> Bucket:
    """Return a bucket whose log has a row after every round."""
    training = Training(
        steps=_STEPS,
        batch=size.batch,
        warmup_steps=0,
        schedule="constant",
        loss=size.loss,
        log_every=steps,
    )
    many = (size.n_models, _N_BATCHES, size.batch)
    generator = np.random.default_rng(0)
    task = ReadyTask(
        size.vocabulary,
        generator.integers(0, size.vocabulary, (*many, size.length)),
        generator.integers(0, size.vocabulary, many),
    )
    lanes = tuple(
        Lane(f"{index:012x}", Rule(gamma=0.5), training, Seeds.all(index))
        for index in range(size.n_models)
    )
    return Bucket(task, size.model, lanes)

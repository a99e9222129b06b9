"""A task of random tokens: enough to train on, and free of the anchor task's code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from initrate.tasks import Score, Split
from initrate.tasks._task import Integers


@dataclass(frozen=True, slots=True)
class RandomTask:
    """Random tokens; the target is the sum of the first two, so that something can be learned."""

    vocabulary: int = 13
    length: int = 6

    def training_batches(
        self, *, pool_seed: int, order_seed: int, first_step: int, n_steps: int, batch: int
    ) -> tuple[Integers, Integers]:
        """Return the batches of these steps, each a function of the seeds and its step alone."""
        steps = range(first_step, first_step + n_steps)
        tokens = np.stack([self._draw((pool_seed, order_seed, step), batch) for step in steps])
        return tokens, self._targets(tokens)

    def evaluation(self, *, seed: int, pool_seed: int, exhaustive: bool) -> tuple[Split, ...]:
        """Return one split, larger where it is exhaustive."""
        tokens = self._draw((seed, pool_seed), 24 if exhaustive else 8)
        return (Split("training", tokens, self._targets(tokens)),)

    def score(self, splits: Sequence[Split], predictions: Sequence[Integers]) -> Score:
        """Return the accuracy."""
        right = predictions[0] == splits[0].targets
        return Score({"training_accuracy": float(right.mean())}, (), ())

    def _draw(self, seed: tuple[int, ...], n_sequences: int) -> Integers:
        generator = np.random.default_rng(seed)
        return generator.integers(0, self.vocabulary, (n_sequences, self.length))

    def _targets(self, tokens: Integers) -> Integers:
        return (tokens[..., 0] + tokens[..., 1]) % self.vocabulary

"""Learning rate and weight decay at each step, in closed form."""

from __future__ import annotations

import math

from initrate.rule import decay_factor
from initrate.training._config import Training


def learning_rate(training: Training, step: int) -> float:
    """Return the learning rate of update `step`, counted from 0.

    Linear warm-up from `lr_start` to `lr`, then cosine, linear or constant to the end.

    >>> learning_rate(Training(lr=1e-3, warmup_steps=200), 199)
    0.001
    """
    if step < training.warmup_steps:
        share = (step + 1) / training.warmup_steps
        return training.lr_start + (training.lr - training.lr_start) * share
    if training.schedule == "constant":
        return training.lr
    final = training.lr_final
    if final is None:
        final = training.lr_final_fraction * training.lr
    done = (step + 1 - training.warmup_steps) / (training.steps - training.warmup_steps)
    if training.schedule == "linear":
        return training.lr + (final - training.lr) * done
    return final + (training.lr - final) * (1 + math.cos(math.pi * done)) / 2


def weight_decay(training: Training, step: int) -> float:
    """Return weight decay times its schedule's factor at update `step`.

    >>> from initrate.training import window
    >>> training = Training(weight_decay=0.1, decay_schedule=window(100, 200))
    >>> [weight_decay(training, step) for step in (99, 100, 199, 200)]
    [0.0, 0.1, 0.1, 0.0]
    """
    return training.weight_decay * decay_factor(training.decay_schedule, step)


def shrinkage(training: Training, step: int) -> float:
    """Return the share of a decayed weight that update `step` takes away.

    >>> shrinkage(Training(lr=1e-3, weight_decay=0.1, warmup_steps=0, schedule="constant"), 0)
    0.0001
    """
    decay = weight_decay(training, step)
    return decay * learning_rate(training, step) if training.decay_mode == "coupled" else decay

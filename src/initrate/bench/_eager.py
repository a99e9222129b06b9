"""One `nn.Module` after another, with `torch.optim.AdamW`: eager, or compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from initrate.bench._plain import PlainDecoder
from initrate.bench._plain_step import plain_loss, plain_optimizer, plain_step
from initrate.bench._problem import OnRound, Problem


def run(problem: Problem, on_round: OnRound) -> None:
    """Train until `on_round` says no, operation by operation."""
    _one_by_one(problem, on_round, plain_loss)


def run_compiled(problem: Problem, on_round: OnRound) -> None:
    """Train until `on_round` says no; forward and backward pass are compiled, once for all."""
    compiled: Any = torch.compile(plain_loss, fullgraph=True)
    _one_by_one(problem, on_round, compiled)


def plain_models(problem: Problem) -> list[PlainDecoder]:
    """Return the models with their initial weights."""
    weights = problem.weights()
    models = []
    for index in range(problem.size.n_models):
        model = PlainDecoder(problem.size.model, problem.size.vocabulary)
        model.load_canonical({name: array[index] for name, array in weights.items()})
        models.append(model)
    return models


def _one_by_one(problem: Problem, on_round: OnRound, loss_of: Callable[..., Tensor]) -> None:
    torch.set_num_threads(problem.threads)
    training = problem.training
    runs = [(model, plain_optimizer(model, training)) for model in plain_models(problem)]
    first_step, going = 0, True
    while going:
        steps = range(first_step, first_step + problem.steps)
        batches = [tuple(map(torch.from_numpy, problem.batch(step))) for step in steps]
        losses = [
            [
                plain_step(
                    model,
                    optimizer,
                    training=training,
                    step=step,
                    tokens=tokens[index],
                    targets=targets[index],
                    loss_of=loss_of,
                )
                for step, (tokens, targets) in zip(steps, batches, strict=True)
            ]
            for index, (model, optimizer) in enumerate(runs)
        ]
        first_step = steps.stop
        going = on_round(np.mean(losses, axis=1).tolist())

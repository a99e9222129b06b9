"""All models at once by `torch.func`: stacked modules, vmap of grad, a batched AdamW."""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

from initrate.bench._eager import plain_models
from initrate.bench._plain_step import plain_decay, plain_learning_rate, plain_loss
from initrate.bench._problem import OnRound, Problem
from initrate.training import Training

Tensors = dict[str, Tensor]
"""Name -> [n_models, *shape]."""


def run(problem: Problem, on_round: OnRound) -> None:
    """Train until `on_round` says no."""
    torch.set_num_threads(problem.threads)
    training = problem.training
    models = plain_models(problem)
    skeleton = copy.deepcopy(models[0]).to("meta")
    weights = {name: w.detach() for name, w in stack_module_state(list(models))[0].items()}
    first = {name: torch.zeros_like(w) for name, w in weights.items()}
    second = {name: torch.zeros_like(w) for name, w in weights.items()}

    def loss_of(weights: Tensors, tokens: Tensor, targets: Tensor) -> Tensor:
        return plain_loss(
            lambda tokens: functional_call(skeleton, weights, (tokens,)), training, tokens, targets
        )

    gradients_and_losses = vmap(grad_and_value(loss_of))
    first_step, going = 0, True
    while going:
        steps = range(first_step, first_step + problem.steps)
        total = torch.zeros(problem.size.n_models)
        for step in steps:
            gradients, losses = gradients_and_losses(
                weights, *map(torch.from_numpy, problem.batch(step))
            )
            clip(gradients, training)
            adamw(weights, gradients, first, second, training, step)
            total += losses
        first_step = steps.stop
        going = on_round((total / problem.steps).tolist())


def clip(gradients: Tensors, training: Training) -> None:
    """Bring the gradient of each model to a norm of `clip_norm` at most, in place."""
    if training.clip_norm is None:
        return
    squares = torch.stack([g.square().flatten(1).sum(1) for g in gradients.values()]).sum(0)
    factor = (training.clip_norm / (squares.sqrt() + 1e-6)).clamp(max=1.0)
    for gradient in gradients.values():
        gradient.mul_(factor.view(-1, *[1] * (gradient.ndim - 1)))


def adamw(
    weights: Tensors,
    gradients: Tensors,
    first: Tensors,
    second: Tensors,
    training: Training,
    step: int,
) -> None:
    """Take update `step` (from 0) of all models in place, with decay on everything."""
    lr, decay = plain_learning_rate(training, step), plain_decay(training, step)
    correction_1 = 1 - training.beta1 ** (step + 1)
    correction_2 = 1 - training.beta2 ** (step + 1)
    for name, weight in weights.items():
        gradient = gradients[name]
        first[name].lerp_(gradient, 1 - training.beta1)
        second[name].mul_(training.beta2).addcmul_(gradient, gradient, value=1 - training.beta2)
        size = (second[name] / correction_2).sqrt_().add_(training.eps)
        weight.mul_(1 - lr * decay).addcdiv_(first[name], size, value=-lr / correction_1)

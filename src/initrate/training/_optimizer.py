"""AdamW and SGD over a bucket: every model a row of one flat matrix, each with its own numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from initrate.rule import TensorSpec, role_decays
from initrate.training._config import Training
from initrate.training._schedule import learning_rate, shrinkage


@dataclass(frozen=True, slots=True)
class State:
    """Weights, gradients and moments, each [n_models, n_parameters]; `views` cuts them up."""

    weights: Tensor
    gradients: Tensor
    first_moment: Tensor
    """Of SGD: the momentum buffer."""
    second_moment: Tensor | None
    """None of SGD."""
    specs: tuple[TensorSpec, ...]

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Return name -> [n_models, *shape], all views of `flat`."""
        sizes = [spec.size for spec in self.specs]
        parts = flat.split(sizes, 1)
        return {
            spec.name: part.view(-1, *spec.shape)
            for spec, part in zip(self.specs, parts, strict=True)
        }

    def rows(self, rows: slice) -> State:
        """Return the state of these models: the same memory, changed by nobody else.

        `data` and not a plain view: views of one tensor count their changes together, and autograd
        would take a neighbour's update for a change of these weights.
        """
        second = self.second_moment
        return State(
            self.weights.data[rows],
            self.gradients.data[rows],
            self.first_moment.data[rows],
            None if second is None else second.data[rows],
            self.specs,
        )


def is_decayed(training: Training, spec: TensorSpec) -> bool:
    """Return whether this tensor decays under the policy of the recipe."""
    return role_decays(training.decay, spec.role)


def decay_mask(training: Training, specs: Iterable[TensorSpec], like: Tensor) -> Tensor | None:
    """Return [n_parameters] of 0 and 1, or None where everything decays."""
    if training.decay == "all":
        return None
    parts = [torch.full((spec.size,), float(is_decayed(training, spec))) for spec in specs]
    return torch.cat(parts).to(like)


def update(
    state: State,
    training: Training,
    model: int,
    step: int,
    *,
    gradient_norm: float,
    mask: Tensor | None,
) -> None:
    """Take update `step` (from 0) of one model in place: clip, decay, move.

    Each model is updated by itself, so that its bits do not depend on its neighbours; one row
    fits the cache, so that the passes over it are cheap.
    """
    weights, gradient = state.weights[model], state.gradients[model]
    first = state.first_moment[model]
    lr, share = learning_rate(training, step), shrinkage(training, step)
    if training.clip_norm is not None:
        gradient.mul_(min(1.0, training.clip_norm / (gradient_norm + 1e-6)))
    if share and mask is None:
        weights.mul_(1 - share)
    elif share and mask is not None:
        weights.addcmul_(weights, mask, value=-share)
    if state.second_moment is None:
        if training.momentum == 0:
            weights.add_(gradient, alpha=-lr)
            return
        # As in torch, the first step fills the buffer with the gradient itself.
        first.mul_(training.momentum).add_(gradient)
        weights.add_(first, alpha=-lr)
        return
    second = state.second_moment[model]
    first.lerp_(gradient, 1 - training.beta1)
    second.mul_(training.beta2).addcmul_(gradient, gradient, value=1 - training.beta2)
    correction_1 = 1 - training.beta1 ** (step + 1)
    correction_2 = math.sqrt(1 - training.beta2 ** (step + 1))
    # The gradient has been used: its row holds the denominator.
    torch.sqrt(second, out=gradient).div_(correction_2).add_(training.eps)
    weights.addcdiv_(first, gradient, value=-lr / correction_1)

"""The loss of each model of a bucket."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from initrate.model import ModelConfig, logits
from initrate.training._config import Training


def losses(
    config: ModelConfig,
    training: Training,
    weights: dict[str, Tensor],
    tokens: Tensor,
    targets: Tensor,
) -> Tensor:
    """Return the mean cross-entropy of each model [M], in nats, of tokens [M, B, T]."""
    if training.loss == "last":
        return cross_entropy(logits(config, weights, tokens), targets)
    # Position t is asked for token t + 1, the last one for the target.
    labels = torch.cat([tokens[:, :, 1:], targets[:, :, None]], -1)
    out = logits(config, weights, tokens, positions="all")
    if training.loss == "chosen":
        chosen = list(training.loss_positions)
        out, labels = out[:, :, chosen], labels[:, :, chosen]
    return cross_entropy(out, labels)


def cross_entropy(out: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy [M] of logits [M, ..., V] and labels [M, ...]."""
    each = functional.cross_entropy(
        out.reshape(-1, out.shape[-1]), labels.reshape(-1), reduction="none"
    )
    return each.view(out.shape[0], -1).mean(1)

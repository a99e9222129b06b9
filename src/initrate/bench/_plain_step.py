"""The plain way to train: autograd and torch.optim, one model after another.

It shares no code with the batched engine, only the meaning of `Training`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from initrate.bench._plain import PlainDecoder
from initrate.training import Training


def plain_learning_rate(training: Training, step: int) -> float:
    """Return the learning rate of update number `step`, counted from 0.

    >>> plain_learning_rate(Training(lr=0.1, warmup_steps=10), 4)
    0.05
    """
    done, peak = step + 1, training.lr
    final = training.lr_final_fraction * peak if training.lr_final is None else training.lr_final
    if done <= training.warmup_steps:
        return training.lr_start + (peak - training.lr_start) * done / training.warmup_steps
    share = (done - training.warmup_steps) / (training.steps - training.warmup_steps)
    if training.schedule == "constant":
        return peak
    if training.schedule == "linear":
        return (1 - share) * peak + share * final
    return final + (peak - final) * math.cos(math.pi * share / 2) ** 2


def plain_decay(training: Training, step: int) -> float:
    """Return the weight decay of update number `step`.

    >>> plain_decay(Training(weight_decay=0.1, decay_schedule=((5, 0.0),)), 5)
    0.0
    """
    factor = 1.0
    for first, new_factor in training.decay_schedule:
        if step >= first:
            factor = new_factor
    return training.weight_decay * factor


def plain_optimizer(model: PlainDecoder, training: Training) -> torch.optim.Optimizer:
    """Return AdamW or SGD over two groups of parameters: first those that decay."""
    decaying, others = [], []
    for name, parameter in model.named_parameters():
        embedding = name.startswith(("token_embedding", "position_embedding", "unembedding"))
        decays = {
            "all": True,
            "matrices": parameter.ndim == 2,
            "not_embeddings": parameter.ndim == 2 and not embedding,
        }[training.decay]
        (decaying if decays else others).append(parameter)
    groups = [{"params": decaying}, {"params": others}]
    # Decay is set anew at every step: torch's own for coupled AdamW, by hand for the rest.
    if training.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=1.0, momentum=training.momentum)
    betas = (training.beta1, training.beta2)
    return torch.optim.AdamW(groups, lr=1.0, betas=betas, eps=training.eps, weight_decay=0.0)


def plain_loss(
    model: Callable[[Tensor], Tensor], training: Training, tokens: Tensor, targets: Tensor
) -> Tensor:
    """Return the mean cross-entropy over the positions that the recipe asks.

    The model gives logits [batch, length, vocabulary] of tokens [batch, length].
    """
    logits = model(tokens)
    if training.loss == "last":
        return functional.cross_entropy(logits[:, -1], targets)
    answers = torch.cat([tokens[:, 1:], targets[:, None]], dim=1)
    if training.loss == "chosen":
        asked = list(training.loss_positions)
        logits, answers = logits[:, asked], answers[:, asked]
    return functional.cross_entropy(logits.flatten(0, 1), answers.flatten())


def plain_step(
    model: PlainDecoder,
    optimizer: torch.optim.Optimizer,
    *,
    training: Training,
    step: int,
    tokens: Tensor,
    targets: Tensor,
    loss_of: Callable[..., Tensor] = plain_loss,
) -> float:
    """Return the loss before update number `step`, having made that update.

    `loss_of` is `plain_loss`, or what a compiler has made of it.
    """
    optimizer.zero_grad()
    loss = loss_of(model, training, tokens, targets)
    loss.backward()
    if training.clip_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), training.clip_norm)
    lr, decay = plain_learning_rate(training, step), plain_decay(training, step)
    for group in optimizer.param_groups:
        group["lr"] = lr
    if training.optimizer == "adamw" and training.decay_mode == "coupled":
        optimizer.param_groups[0]["weight_decay"] = decay
    else:
        share = lr * decay if training.decay_mode == "coupled" else decay
        with torch.no_grad():
            for parameter in optimizer.param_groups[0]["params"]:
                parameter.mul_(1 - share)
    optimizer.step()
    return loss.item()

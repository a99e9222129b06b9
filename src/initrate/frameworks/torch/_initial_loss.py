"""The loss of a fresh model, which should be that of equal probabilities: ln(vocabulary)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from initrate.errors import InputError
from initrate.rule import Finding

_FAR = 1.0
"""Nats. Logits of std s cost s² / 2 more than equal ones: one nat is a std of 1.4."""


def loss_findings(model: nn.Module, batch: object) -> list[Finding]:
    """Return the finding IR110 where the loss on a batch is far from ln(number of classes).

    The batch is what the model takes: a mapping of arguments, with the labels in it, or a sequence
    of them. The model must give `loss` and `logits`, as those of Hugging Face do, or both as a
    pair in either order.
    """
    with _as_it_was(model), torch.no_grad():
        try:
            output = _outputs(model, batch)
        except InputError:
            raise
        # A model of the user's may raise anything.
        except Exception as error:
            text = " ".join(str(error).split())[:200]
            kind = type(error).__name__
            raise InputError(f"the model does not take the batch: {kind}: {text}") from error
    loss, logits = _loss_and_logits(output)
    n_classes = logits.shape[-1] if logits.dim() else 1
    if n_classes < 2:
        raise InputError(
            "the model gives one logit, and the loss of equal probabilities is not known: leave "
            "batch out"
        )
    return far_from_equal(float(loss), math.log(n_classes), logits)


def far_from_equal(loss: float, expected: float, logits: torch.Tensor) -> list[Finding]:
    """Return the finding IR110 where a loss is far from that of equal probabilities.

    `expected` is ln(classes), and classes are the last axis of the logits.
    """
    # A batch is a sample: logits of std s move its mean loss by s / sqrt(its positions).
    positions = max(1, logits.numel() // logits.shape[-1])
    std = float(logits.detach().float().std())
    sampling = min(4 * std / math.sqrt(positions), _FAR)
    if not math.isfinite(loss):
        cause = "labels that are all ignored, or values that overflow, make such a loss"
    elif loss > expected + _FAR + sampling:
        cause = f"the logits, of std {std:.2f}, are too large: make the last map, or embeddings "
        cause += "tied to it, smaller"
    elif loss < expected - min(_FAR, expected / 2) - sampling:
        cause = "the model is trained already, or sees the answer"
    else:
        return []
    message = f"the loss is {loss:.2f}, and that of equal probabilities {expected:.2f}: {cause}"
    return [Finding("IR110", (), message)]


def _outputs(model: nn.Module, batch: object) -> object:
    if isinstance(batch, Mapping):
        return model(**batch)
    if isinstance(batch, torch.Tensor):
        return model(batch)
    if isinstance(batch, Sequence) and not isinstance(batch, str):
        return model(*batch)
    raise InputError(
        f"batch is {type(batch).__name__}: expected a mapping of the model's arguments with the "
        "labels in it, or a sequence of them"
    )


def _loss_and_logits(output: object) -> tuple[torch.Tensor, torch.Tensor]:
    loss, logits = getattr(output, "loss", None), getattr(output, "logits", None)
    if loss is None and isinstance(output, tuple | list):
        tensors = [found for found in output if isinstance(found, torch.Tensor)]
        loss = next((found for found in tensors if found.numel() == 1), None)
        logits = next((found for found in tensors if found.numel() > 1), None)
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        raise InputError("the model gives no loss for the batch: put the labels in it")
    if not isinstance(logits, torch.Tensor):
        raise InputError("the model gives no logits beside its loss: expected both")
    return loss, logits


@contextmanager
def _as_it_was(model: nn.Module) -> Iterator[None]:
    """Switch dropout and running statistics off; give modules, values and random states back."""
    modes = [(module, module.training) for module in model.modules()]
    before = [(tensor, tensor._version, tensor.detach().clone()) for tensor in model.buffers()]
    state = torch.random.get_rng_state()
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
        torch.random.set_rng_state(state)
        with torch.no_grad():
            for tensor, version, values in before:
                if tensor._version != version:
                    tensor.copy_(values)

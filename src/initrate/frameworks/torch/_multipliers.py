"""Tables whose rows a model multiplies when it looks them up, as Gemma and BART do."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from initrate.frameworks.torch._walk import ModelTensor

_WORDS = ("embed_scale", "scalar_embed_scale")


def multipliers(tensors: Sequence[ModelTensor]) -> dict[str, float]:
    """Return the tables that are multiplied, by name, and by what; nan where that is not known."""
    found = {
        tensor.records[0].key: _number(factor)
        for tensor in tensors
        for word in _WORDS  # The last of them wins: it is a number on the meta device too.
        if (factor := _factor(tensor.owner, word)) is not None
    }
    return {name: number for name, number in found.items() if number != 1.0}


def _factor(owner: object, word: str) -> object:
    try:
        return getattr(owner, word, None)
    except Exception:  # A property of the user's may raise anything.
        return math.nan


def _number(found: object) -> float:
    if isinstance(found, torch.Tensor) and found.numel() == 1 and not found.is_meta:
        found = found.item()
    try:
        return float(found) if isinstance(found, int | float) else math.nan
    except OverflowError:
        return math.nan

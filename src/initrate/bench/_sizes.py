"""The sizes that are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from initrate.model import ModelConfig, shape


@dataclass(frozen=True, slots=True)
class Size:
    """One comparison: how many models of a shape, on which batches."""

    model: ModelConfig
    n_models: int
    batch: int
    vocabulary: int
    length: int = 9
    """Tokens of a sequence."""
    loss: Literal["last", "all"] = "last"
    steps: int = 1
    """Steps of every model in one turn."""


_PAPER = "paper-2405.05409"

SIZES: dict[str, Size] = {
    "laptop": Size(shape("laptop"), n_models=8, batch=256, vocabulary=128, steps=5),
    "d128": Size(
        shape(_PAPER, d_model=128, d_k=64, d_v=64, d_ff=384),
        n_models=4,
        batch=512,
        vocabulary=128,
        steps=3,
    ),
    "paper-2": Size(shape(_PAPER), n_models=1, batch=2048, vocabulary=201),
    "paper-4": Size(shape(_PAPER, n_layers=4), n_models=1, batch=2048, vocabulary=201),
    "paper-7": Size(shape(_PAPER, n_layers=7), n_models=1, batch=2048, vocabulary=201),
    # As SCAN asks: some forty words, long sequences, every position answers.
    "sequences": Size(
        shape("laptop", d_model=128, n_heads=8, d_k=16, d_v=16, d_ff=512, max_positions=48),
        n_models=2,
        batch=64,
        vocabulary=40,
        length=48,
        loss="all",
        steps=3,
    ),
}

"""The batched decoder: shapes, weights, logits."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from initrate.model._config import SHAPES, ModelConfig, shape
from initrate.model._tensors import initialize, n_parameters, tensor_specs

if TYPE_CHECKING:
    from initrate.model._convert import from_gpt2, to_gpt2
    from initrate.model._decoder import block_to_skip, logits

__all__ = [
    "SHAPES",
    "ModelConfig",
    "block_to_skip",
    "from_gpt2",
    "initialize",
    "logits",
    "n_parameters",
    "shape",
    "tensor_specs",
    "to_gpt2",
]

# Shapes and names need NumPy alone; what needs torch is imported when it is asked for.
_NEEDS_TORCH = {
    "block_to_skip": "initrate.model._decoder",
    "logits": "initrate.model._decoder",
    "from_gpt2": "initrate.model._convert",
    "to_gpt2": "initrate.model._convert",
}


def __getattr__(name: str) -> object:
    if name in _NEEDS_TORCH:
        return getattr(importlib.import_module(_NEEDS_TORCH[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

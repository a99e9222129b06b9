"""The benchmark: the engine of initrate beside eager, compiled, vmapped torch and JAX."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from initrate.bench._engines import ENGINES, OURS, lacking
from initrate.bench._measure import environment, measure
from initrate.bench._operations import Operations, operations
from initrate.bench._problem import Problem, ReadyTask
from initrate.bench._result import Comparison, LeftOut, Peak, Row, Spread
from initrate.bench._sizes import SIZES, Size
from initrate.bench._table import HEAD, notes, table

if TYPE_CHECKING:
    from initrate.bench._plain import PlainDecoder
    from initrate.bench._plain_step import (
        plain_decay,
        plain_learning_rate,
        plain_loss,
        plain_optimizer,
        plain_step,
    )

__all__ = [
    "ENGINES",
    "HEAD",
    "OURS",
    "SIZES",
    "Comparison",
    "LeftOut",
    "Operations",
    "Peak",
    "PlainDecoder",
    "Problem",
    "ReadyTask",
    "Row",
    "Size",
    "Spread",
    "environment",
    "lacking",
    "measure",
    "notes",
    "operations",
    "plain_decay",
    "plain_learning_rate",
    "plain_loss",
    "plain_optimizer",
    "plain_step",
    "table",
]

# The plain way needs torch; sizes, problems and results do not.
_NEEDS_TORCH = {
    "PlainDecoder": "initrate.bench._plain",
    "plain_decay": "initrate.bench._plain_step",
    "plain_learning_rate": "initrate.bench._plain_step",
    "plain_loss": "initrate.bench._plain_step",
    "plain_optimizer": "initrate.bench._plain_step",
    "plain_step": "initrate.bench._plain_step",
}


def __getattr__(name: str) -> object:
    if name in _NEEDS_TORCH:
        return getattr(importlib.import_module(_NEEDS_TORCH[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

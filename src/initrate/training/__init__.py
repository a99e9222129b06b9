"""Training: buckets of models as one batched program."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from initrate.rule import decay_window as window
from initrate.training._bucket import (
    Bucket,
    BucketResult,
    Execution,
    Interrupted,
    Lane,
    LaneResult,
    Progress,
    Seeds,
    shared_training,
)
from initrate.training._config import LANE_FIELDS, Training
from initrate.training._schedule import learning_rate, shrinkage, weight_decay

if TYPE_CHECKING:
    from initrate.training._engine import train

__all__ = [
    "LANE_FIELDS",
    "Bucket",
    "BucketResult",
    "Execution",
    "Interrupted",
    "Lane",
    "LaneResult",
    "Progress",
    "Seeds",
    "Training",
    "learning_rate",
    "shared_training",
    "shrinkage",
    "train",
    "weight_decay",
    "window",
]


def __getattr__(name: str) -> object:
    # The engine needs torch; recipes and buckets do not.
    if name == "train":
        return importlib.import_module("initrate.training._engine").train
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

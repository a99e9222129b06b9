"""Hugging Face: a callback of the Trainer, and the rule in a model's config and card."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from initrate.frameworks.huggingface._card import write_card
from initrate.frameworks.huggingface._config import rule_of, write_rule

if TYPE_CHECKING:
    from initrate.frameworks.huggingface._callback import InitrateCallback

__all__ = ["InitrateCallback", "rule_of", "write_card", "write_rule"]


def __getattr__(name: str) -> object:
    # The callback needs transformers and torch; configs and cards do not.
    if name == "InitrateCallback":
        return importlib.import_module("initrate.frameworks.huggingface._callback").InitrateCallback
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

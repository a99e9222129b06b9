"""γ for models of Hugging Face: the names of `initrate.frameworks.huggingface`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initrate.frameworks import huggingface

if TYPE_CHECKING:
    from initrate.frameworks.huggingface import InitrateCallback, rule_of, write_card, write_rule

__all__ = ["InitrateCallback", "rule_of", "write_card", "write_rule"]


def __getattr__(name: str) -> object:
    # The callback alone needs transformers, and is loaded when it is asked for.
    return getattr(huggingface, name)

"""What apply leaves with a model of transformers: marks that it has its values, and the rule."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from torch import nn

from initrate.rule import Rule

FLAG = "_is_hf_initialized"


def transformers_models(model: nn.Module) -> list[nn.Module]:
    """Return the outermost models of transformers in a model, or the model itself if it is one."""
    if "transformers" not in sys.modules:
        return []
    return list(_outermost(model))


def _outermost(module: nn.Module) -> Iterator[nn.Module]:
    if any(
        base.__name__ == "PreTrainedModel" and base.__module__ == "transformers.modeling_utils"
        for base in type(module).__mro__
    ):
        yield module
        return
    for child in module.children():
        yield from _outermost(child)


def mark_initialized(model: nn.Module) -> None:
    """Mark the modules, parameters and buffers of transformers models as having their values."""
    for found in transformers_models(model):
        for module in found.modules():
            setattr(module, FLAG, True)
            for tensor in (*module._parameters.values(), *module._buffers.values()):
                if tensor is not None:
                    setattr(tensor, FLAG, True)


def write_down(model: nn.Module, rule: Rule, seed: int) -> None:
    """Write rule and seed into the configs of transformers models, so that they are saved along."""
    for found in transformers_models(model):
        config = getattr(found, "config", None)
        # Something else under that name is the user's own, and is not saved with the model.
        if hasattr(config, "save_pretrained"):
            from initrate.frameworks.huggingface import write_rule

            write_rule(config, rule, seed)

"""Whether a model looks trained: a fresh norm has one gain for all."""

from __future__ import annotations

from collections.abc import Sequence

from initrate.errors import InputError
from initrate.frameworks.torch._sharded import local_region
from initrate.frameworks.torch._walk import ModelTensor


def refuse_trained(tensors: Sequence[ModelTensor]) -> None:
    """Raise the error for a model with a norm whose weight or bias is not constant."""
    for tensor in tensors:
        if tensor.records[0].roles != ("norm",) or tensor.tensor.is_meta:
            continue
        values = local_region(tensor.tensor.detach())[0]
        if values.numel() and bool((values != values.flatten()[0]).any()):
            raise InputError(
                f"{tensor.records[0].name!r} is not constant: the model looks trained, and apply "
                "would overwrite what it has learned; give force=True if that is meant"
            )

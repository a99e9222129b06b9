"""Adapters and quantized maps: what is recognized by its class, whatever its shape.

Of a model with adapters the base is frozen, and so kept. `lora_A` is drawn like the map that it
stands beside, `lora_B` is zero, so that the adapter starts without effect. The magnitude of DoRA
is that of the base and is kept; so are the copies in `modules_to_save`, which have learned what
the modules have that they are copies of. To draw a new head among them, apply before wrapping.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from initrate.frameworks._layout import Axes, Part
from initrate.frameworks._words import dense_roles
from initrate.frameworks.torch._modules import structured

_QUANTIZED = (
    "aqlm.",
    "auto_gptq.",
    "awq.",
    "bitsandbytes.",
    "compressed_tensors.",
    "eetq.",
    "gptqmodel.",
    "hqq.",
    "optimum.quanto.",
    "quanto.",
    "torch.ao.nn.quantized",
    "torchao.",
)
_FIRST = ("lora_A", "lora_embedding_B")
_SECOND = ("lora_B", "lora_embedding_A")


def quantized_class(owner: nn.Module, attribute: str) -> str:
    """Return the name of the class that makes a parameter a quantized one, or nothing."""
    for holder in (type(owner), type(owner._parameters.get(attribute))):
        for base in holder.__mro__:
            if f"{base.__module__}.".startswith(_QUANTIZED):
                return base.__name__
    return ""


def is_adapter(name: str) -> bool:
    """Return whether a parameter belongs to an adapter, by its name.

    >>> is_adapter("h.0.attn.c_attn.lora_A.default.weight"), is_adapter("h.0.attn.c_attn.weight")
    (True, False)
    """
    return any(word in _FIRST + _SECOND for word in name.split("."))


def special_axes(owner: nn.Module, attribute: str, path: Sequence[str]) -> Axes | None:
    """Return what a parameter is that belongs to an adapter or to a quantized map, or None."""
    quantized = quantized_class(owner, attribute)
    if quantized:
        return Axes(
            parts=(Part(()),),
            refuse=f"is held by the quantized {quantized}: draw before quantizing",
        )
    parameter = owner._parameters.get(attribute)
    if parameter is not None and not parameter.dtype.is_floating_point:
        kind = "quantized" if parameter.is_quantized else "not real"
        return Axes(
            parts=(Part(()),),
            refuse=f"holds {parameter.dtype}, which is {kind}: only real numbers can be drawn",
        )
    if "modules_to_save" in path:
        return structured("a copy of a module of the base (modules_to_save)")
    if "lora_magnitude_vector" in path:
        return structured("the magnitude of an adapter")
    first = next((word for word in _FIRST if word in path), None)
    second = next((word for word in _SECOND if word in path), None)
    if first is None and second is None:
        return None
    if attribute == "bias":
        return Axes(parts=(Part(("bias",)),), zero="the bias of an adapter starts at zero")
    words = ("out", "in", *("kernel",) * (_dimensions(parameter) - 2))
    above = path[: path.index(first or second or "")]
    zero = "" if first else "the second map of an adapter starts at zero"
    return Axes(words, parts=(Part(dense_roles(above)),), zero=zero)


def _dimensions(parameter: torch.Tensor | None) -> int:
    return 2 if parameter is None else max(2, parameter.dim())

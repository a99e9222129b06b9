"""Adapters and quantized maps: what is recognized by its class, whatever its shape."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from initrate.frameworks.torch._layout import Axes, Part
from initrate.frameworks.torch._modules import structured
from initrate.frameworks.torch._words import dense_roles

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


def special_axes(owner: nn.Module, attribute: str, path: Sequence[str]) -> Axes | None:
    """Return what a parameter is that belongs to an adapter or to a quantized map, or None."""
    for base in type(owner).__mro__:
        if base.__module__.startswith(_QUANTIZED):
            return Axes(
                parts=(Part(()),),
                refuse=f"is held by the quantized {base.__name__}: draw before quantizing",
            )
    if "lora_A" in path or "lora_embedding_B" in path:
        above = path[: path.index("lora_A" if "lora_A" in path else "lora_embedding_B")]
        return Axes(("out", "in"), parts=(Part(dense_roles(above)),))
    if "lora_B" in path or "lora_embedding_A" in path:
        zero = "the second map of an adapter starts at zero"
        return Axes(("out", "in"), parts=(Part(dense_roles(path[:-2])),), zero=zero)
    if "lora_magnitude_vector" in path:
        return structured("the magnitude of an adapter")
    return None

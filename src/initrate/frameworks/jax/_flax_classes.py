"""The modules of Flax, NNX and Linen: the axes of their parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from initrate.frameworks._einsum import einsum_axes
from initrate.frameworks._layout import Axes, Part
from initrate.frameworks._parameter import BIAS, NORM, Described, Known, structured

_CONVOLUTION = (Part(("convolution",)),)
_BIAS = Known(BIAS)
_NORMS = ("BatchNorm", "GroupNorm", "InstanceNorm", "LayerNorm", "RMSNorm")
LORA_BASE = "is the base of an adapter"


def _tuple(found: Any) -> tuple[int, ...]:
    return tuple(found) if isinstance(found, Sequence) else (found,)


def _linear(module: Any) -> Described:
    return {"kernel": Known(Axes(("in", "out")), _sides(module)), "bias": _BIAS}


def _sides(module: Any) -> tuple[int, ...] | None:
    """Return (in, out) of an NNX module; one of Linen learns its inputs from what it is given."""
    in_features = getattr(module, "in_features", None)
    return None if in_features is None else (in_features, module.out_features)


def _linear_general(module: Any) -> Described:
    # Flax multiplies the sizes of batch axes into fan-in; each of them is a copy of its own.
    copies, inputs = tuple(module.batch_axis.values()), _tuple(module.in_features)
    outputs = _tuple(module.out_features)
    words = ("copy",) * len(copies) + ("in",) * len(inputs) + ("out",) * len(outputs)
    return {"kernel": Known(Axes(words), (*copies, *inputs, *outputs)), "bias": _BIAS}


def _dense_general(module: Any) -> Described:
    copies, inputs = len(_tuple(module.batch_dims)), len(_tuple(module.axis))
    words = ("copy",) * copies + ("in",) * inputs + ("out",) * len(_tuple(module.features))
    return {"kernel": Known(Axes(words)), "bias": _BIAS}


def _einsum(module: Any) -> Described:
    shape = getattr(module, "kernel_shape", None) or getattr(module, "shape", None)
    shape = None if shape is None else tuple(shape)
    return {"kernel": Known(einsum_axes(module.einsum_str), shape), "bias": _BIAS}


def _convolution(module: Any) -> Described:
    words = ("kernel",) * len(_tuple(module.kernel_size)) + ("in", "out")
    shape = getattr(module, "kernel_shape", None)
    return {
        "kernel": Known(Axes(words, parts=_CONVOLUTION), None if shape is None else tuple(shape)),
        "bias": _BIAS,
    }


def _local_convolution(module: Any) -> Described:
    # Each place has a kernel of its own, whose places and inputs lie in one axis.
    words = ("copy",) * len(_tuple(module.kernel_size)) + ("in", "out")
    return {"kernel": Known(Axes(words, parts=_CONVOLUTION)), "bias": _BIAS}


def _transposed_convolution(module: Any) -> Described:
    kernel = _tuple(module.kernel_size)
    strides = _tuple(module.strides or 1)
    strides = strides * len(kernel) if len(strides) == 1 else strides
    ends = ("out", "in") if module.transpose_kernel else ("in", "out")
    # One output adds up the inputs at every stride-th place of the kernel.
    axes = Axes(
        ("kernel",) * len(kernel) + ends, parts=_CONVOLUTION, divide_d_in=math.prod(strides)
    )
    return {"kernel": Known(axes, getattr(module, "kernel_shape", None)), "bias": _BIAS}


def _embed(module: Any) -> Described:
    axes = Axes(("row", "width"), parts=(Part(("token_embedding",)),))
    return {"embedding": Known(axes, (module.num_embeddings, module.features))}


def _norm(module: Any) -> Described:
    return {"scale": Known(NORM), "bias": Known(NORM)}


def _slope(module: Any) -> Described:
    return {"negative_slope": structured("the slope of an activation")}


def _lora(module: Any) -> Described:
    zero = "the second map of an adapter starts at zero"
    return {"lora_a": Known(Axes(("in", "out"))), "lora_b": Known(Axes(("in", "out"), zero=zero))}


def _lora_linear(module: Any) -> Described:
    return {name: Known(replace(k.axes, keep=LORA_BASE)) for name, k in _linear(module).items()}


Describe = Callable[[Any], Described]

NNX: dict[str, Describe] = {
    "LoRALinear": _lora_linear,
    "Linear": _linear,
    "LinearGeneral": _linear_general,
    "Einsum": _einsum,
    "Conv": _convolution,
    "ConvTranspose": _transposed_convolution,
    "Embed": _embed,
    "LoRA": _lora,
    "PReLU": _slope,
    **dict.fromkeys(_NORMS, _norm),
}

LINEN: dict[str, Describe] = {
    "Dense": _linear,
    "DenseParams": _linear,
    "DenseGeneral": _dense_general,
    "Einsum": _einsum,
    "Conv": _convolution,
    "ConvLocal": _local_convolution,
    "ConvTranspose": _transposed_convolution,
    "Embed": _embed,
    "PReLU": _slope,
    **dict.fromkeys(_NORMS, _norm),
}

_ATTENTION = {"query": "query", "key": "key", "value": "value", "out": "attention_output"}

CHILDREN: dict[str, dict[str, str]] = {
    "MultiHeadAttention": _ATTENTION,
    "MultiHeadDotProductAttention": _ATTENTION,
}
"""The roles of the maps that a module of Flax holds, by their names in it."""

CELLS = ("RNNCellBase",)
"""The classes whose maps are steps of a recurrence."""

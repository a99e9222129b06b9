"""The modules of Equinox: the axes of their parameters."""

from __future__ import annotations

import math
from typing import Any

from initrate.frameworks._layout import Axes, Part
from initrate.frameworks._parameter import BIAS, NORM, Described, Known, structured
from initrate.frameworks.jax._flax_classes import Describe

_BIAS = Known(BIAS)
_LINEAR = (Part(("linear",)),)
_CONVOLUTION = (Part(("convolution",)),)


def _linear(module: Any) -> Described:
    shape = tuple(1 if n == "scalar" else n for n in (module.out_features, module.in_features))
    return {"weight": Known(Axes(("out", "in")), shape), "bias": _BIAS}


def _convolution(module: Any) -> Described:
    kernel = tuple(module.kernel_size)
    axes = Axes(("out", "in", *("kernel",) * len(kernel)), parts=_CONVOLUTION)
    shape = (module.out_channels, module.in_channels // module.groups, *kernel)
    return {"weight": Known(axes, shape), "bias": _BIAS}


def _transposed_convolution(module: Any) -> Described:
    kernel, strides = tuple(module.kernel_size), tuple(module.stride)
    # One output adds up the inputs at every stride-th place of the kernel.
    axes = Axes(
        ("out", "in", *("kernel",) * len(kernel)),
        parts=_CONVOLUTION,
        divide_d_in=math.prod(strides),
    )
    shape = (module.out_channels, module.in_channels // module.groups, *kernel)
    return {"weight": Known(axes, shape), "bias": _BIAS}


def _embedding(module: Any) -> Described:
    axes = Axes(("row", "width"), parts=(Part(("token_embedding",)),))
    return {"weight": Known(axes, (module.num_embeddings, module.embedding_size))}


def _norm(module: Any) -> Described:
    return {"weight": Known(NORM), "bias": Known(NORM)}


def _cell(gates: int) -> Describe:
    def describe(module: Any) -> Described:
        axes, rows = Axes(("out", "in"), parts=_LINEAR), gates * module.hidden_size
        return {
            "weight_ih": Known(axes, (rows, module.input_size)),
            "weight_hh": Known(axes, (rows, module.hidden_size)),
            "bias": _BIAS,
            "bias_n": _BIAS,
        }

    return describe


def _slope(module: Any) -> Described:
    return {"negative_slope": structured("the slope of an activation")}


EQUINOX: dict[str, Describe] = {
    "Linear": _linear,
    "Conv": _convolution,
    "ConvTranspose": _transposed_convolution,
    "Embedding": _embedding,
    "LSTMCell": _cell(4),
    "GRUCell": _cell(3),
    "PReLU": _slope,
    **dict.fromkeys(("BatchNorm", "GroupNorm", "LayerNorm", "RMSNorm"), _norm),
}

CHILDREN: dict[str, dict[str, str]] = {
    "MultiheadAttention": {
        "query_proj": "query",
        "key_proj": "key",
        "value_proj": "value",
        "output_proj": "attention_output",
    }
}
"""The roles of the maps that a module of Equinox holds, by their names in it."""

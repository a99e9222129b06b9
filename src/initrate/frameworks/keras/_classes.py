"""The layers of Keras 3: the axes of their weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from initrate.frameworks._einsum import einsum_axes
from initrate.frameworks._layout import Axes, Part
from initrate.frameworks._parameter import BIAS, NORM, Described, Known, structured

_BIAS = Known(BIAS)
_LINEAR = (Part(("linear",)),)
_CONVOLUTION = (Part(("convolution",)),)
_TABLE = (Part(("token_embedding",)),)
_ZERO = "the second map of an adapter starts at zero"


def _with_adapter(kernel: Axes) -> Described:
    """Return a kernel, its bias, and the two maps that LoRA puts beside it."""
    described = {"kernel": Known(kernel), "bias": _BIAS}
    # The first map has the axes of the kernel but the last, which must be an output for that.
    if kernel.words and kernel.words[-1] == "out":
        described["lora_kernel_a"] = Known(kernel)
        described["lora_kernel_b"] = Known(Axes(("in", "out"), zero=_ZERO))
    return described


def _dense(layer: Any) -> Described:
    return _with_adapter(Axes(("in", "out")))


def _einsum_dense(layer: Any) -> Described:
    return _with_adapter(einsum_axes(layer.equation))


def _kernel(layer: Any) -> tuple[str, ...]:
    return ("kernel",) * len(layer.kernel_size)


def _convolution(layer: Any) -> Described:
    return _with_adapter(Axes((*_kernel(layer), "in", "out"), parts=_CONVOLUTION))


def _transposed_convolution(layer: Any) -> Described:
    # One output adds up the inputs at every stride-th place of the kernel.
    axes = Axes(
        (*_kernel(layer), "out", "in"), parts=_CONVOLUTION, divide_d_in=math.prod(layer.strides)
    )
    return {"kernel": Known(axes), "bias": _BIAS}


def _depthwise(layer: Any) -> Described:
    # Every channel is mapped by itself: one output adds up the places of one channel.
    axes = Axes((*_kernel(layer), "out", "out"), parts=_CONVOLUTION)
    return {"kernel": Known(axes), "depthwise_kernel": Known(axes), "bias": _BIAS}


def _separable(layer: Any) -> Described:
    pointwise = Axes((*_kernel(layer), "in", "out"), parts=_CONVOLUTION)
    return {**_depthwise(layer), "pointwise_kernel": Known(pointwise)}


def _embedding(layer: Any) -> Described:
    return {"embeddings": Known(Axes(("row", "width"), parts=_TABLE))}


def _reversible_embedding(layer: Any) -> Described:
    back = Axes(("in", "out"), parts=(Part(("unembedding",)),))
    return {**_embedding(layer), "reverse_embeddings": Known(back)}


def _norm(layer: Any) -> Described:
    return dict.fromkeys(("gamma", "beta", "scale"), Known(NORM))


def _recurrent(layer: Any) -> Described:
    axes = Known(Axes(("in", "out"), parts=_LINEAR))
    return {"kernel": axes, "recurrent_kernel": axes, "bias": _BIAS}


def _recurrent_convolution(layer: Any) -> Described:
    axes = Known(Axes((*_kernel(layer), "in", "out"), parts=_CONVOLUTION))
    return {"kernel": axes, "recurrent_kernel": axes, "bias": _BIAS}


def _slope(layer: Any) -> Described:
    return {"alpha": structured("the slope of an activation")}


def _attention_scale(layer: Any) -> Described:
    return {"scale": structured("the scale of an attention")}


Describe = Callable[[Any], Described]

_CLASSES: dict[str, Describe] = {
    "Dense": _dense,
    "EinsumDense": _einsum_dense,
    "BaseConv": _convolution,
    "BaseConvTranspose": _transposed_convolution,
    "BaseDepthwiseConv": _depthwise,
    "BaseSeparableConv": _separable,
    "ReversibleEmbedding": _reversible_embedding,
    "Embedding": _embedding,
    "ConvLSTMCell": _recurrent_convolution,
    "Attention": _attention_scale,
    "AdditiveAttention": _attention_scale,
    "PReLU": _slope,
    **dict.fromkeys(("GRUCell", "LSTMCell", "SimpleRNNCell"), _recurrent),
    **dict.fromkeys(
        ("BatchNormalization", "GroupNormalization", "LayerNormalization", "RMSNormalization"),
        _norm,
    ),
}

_ATTENTION = {
    "query": "query",
    "key": "key",
    "value": "value",
    "attention_output": "attention_output",
}
_CHILDREN = {"MultiHeadAttention": _ATTENTION, "GroupedQueryAttention": _ATTENTION}

NORMALIZED = "SpectralNormalization"
"""The wrapper that divides the weights of its layer by their norm."""


def keras_classes(layer: object) -> Iterator[str]:
    """Yield the names of the classes of Keras that a layer is derived from."""
    for base in type(layer).__mro__:
        if base.__module__.split(".")[0] == "keras":
            yield base.__name__


def describe_layer(layer: object) -> Described:
    """Return what the own weights of a known layer are; nothing of an unknown one."""
    for name in keras_classes(layer):
        if name in _CLASSES:
            return _CLASSES[name](layer)
    return {}


def role_in(parent: object, name: str) -> str | None:
    """Return the role of the map that a known layer holds by this name."""
    return next((_CHILDREN[c].get(name) for c in keras_classes(parent) if c in _CHILDREN), None)


def with_role(axes: Axes, role: str | None) -> Axes:
    """Return the axes with one role for the whole tensor, if one is known."""
    return axes if role is None else replace(axes, parts=(Part((role,)),))

"""The modules of torch, and Hugging Face's Conv1D: the axes of their parameters."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import torch
from torch import nn

from initrate.frameworks._layout import Axes, Part
from initrate.rule import Slice

Described = dict[str, Axes]
"""A parameter's name in its module, and what it is."""

NORM = Axes(parts=(Part(("norm",)),))
BIAS = Axes(parts=(Part(("bias",)),))
_LINEAR = Part(("linear",))
_IS_NORM = re.compile(r"(norm|rms|^ln$|layer_?norm)\w*$", re.IGNORECASE)
_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.modules.batchnorm._NormBase)
_NORM_WORDS = {"weight", "bias", "scale", "gain", "g", "b", "gamma", "beta", "a_2", "b_2"}


def structured(reason: str) -> Axes:
    """Return what a parameter is that is never drawn."""
    return Axes(parts=(Part(("structured",)),), keep=reason)


def _linear(module: nn.Module) -> Described:
    return {"weight": Axes(("out", "in")), "bias": BIAS}


def _conv1d_of_hugging_face(module: nn.Module) -> Described:
    return {"weight": Axes(("in", "out")), "bias": BIAS}


def _convolution(module: nn.Module) -> Described:
    assert isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d)
    kernel = ("kernel",) * len(module.kernel_size)
    weight = Axes(("out", "in", *kernel), parts=(Part(("convolution",)),))
    return {"weight": weight, "bias": BIAS}


def _transposed_convolution(module: nn.Module) -> Described:
    assert isinstance(module, nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d)
    # One output adds up the inputs of one group, at every stride-th place of the kernel.
    kernel = ("kernel",) * len(module.kernel_size)
    groups, stride = module.groups, math.prod(int(s) for s in module.stride)
    weight = Axes(
        ("in", "out", *kernel),
        parts=(Part(("convolution",)),),
        divide_d_in=groups * stride,
    )
    return {"weight": weight, "bias": BIAS}


def _embedding(module: nn.Module) -> Described:
    return {"weight": Axes(("row", "width"), parts=(Part(("token_embedding",)),))}


def _norm(module: nn.Module) -> Described:
    return {"weight": NORM, "bias": NORM}


def _multihead_attention(module: nn.Module) -> Described:
    assert isinstance(module, nn.MultiheadAttention)
    width = module.embed_dim
    parts = tuple(
        Part((role,), Slice(axis=0, start=i * width, length=width), role)
        for i, role in enumerate(("query", "key", "value"))
    )
    described = {
        "in_proj_weight": Axes(("out", "in"), parts=parts),
        "in_proj_bias": BIAS,
        "bias_k": structured("a learned key beside the tokens'"),
        "bias_v": structured("a learned value beside the tokens'"),
    }
    for role in ("query", "key", "value"):
        described[f"{role[0]}_proj_weight"] = Axes(("out", "in"), parts=(Part((role,)),))
    return described


def _bilinear(module: nn.Module) -> Described:
    return {"weight": Axes(("out", "in", "in"), parts=(_LINEAR,)), "bias": BIAS}


def _recurrent(module: nn.Module) -> Described:
    return {
        name: Axes(("out", "in"), parts=(_LINEAR,)) if name.startswith("weight") else BIAS
        # Their own list of names has those too that a weight norm has replaced.
        for name in {
            **module._parameters,
            **dict.fromkeys(getattr(module, "_flat_weights_names", ())),
        }
    }


def _slope(module: nn.Module) -> Described:
    return {"weight": structured("the slope of an activation")}


_KNOWN: tuple[tuple[tuple[type[nn.Module], ...], Callable[[nn.Module], Described]], ...] = (
    ((nn.Linear,), _linear),
    ((nn.Conv1d, nn.Conv2d, nn.Conv3d), _convolution),
    ((nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d), _transposed_convolution),
    ((nn.Embedding, nn.EmbeddingBag), _embedding),
    ((nn.MultiheadAttention,), _multihead_attention),
    (_NORMS, _norm),
    ((nn.Bilinear,), _bilinear),
    ((nn.RNNBase, nn.RNNCellBase), _recurrent),
    ((nn.PReLU,), _slope),
)


def is_conv1d_of_hugging_face(module: nn.Module) -> bool:
    """Return whether the module is Conv1D of transformers, whose weight is [in, out]."""
    return any(
        base.__name__ == "Conv1D" and base.__module__ == "transformers.pytorch_utils"
        for base in type(module).__mro__
    )


def is_norm(module: nn.Module) -> bool:
    """Return whether the module is a norm by its class, or by its name and its parameters."""
    if isinstance(
        module, nn.LayerNorm | nn.GroupNorm | nn.RMSNorm | nn.modules.batchnorm._NormBase
    ):
        return True
    own = dict(module.named_parameters(recurse=False))
    named = any(_IS_NORM.search(base.__name__) for base in type(module).__mro__)
    return named and all(name in _NORM_WORDS and p.dim() <= 1 for name, p in own.items())


def describe_module(module: nn.Module) -> Described:
    """Return what the own parameters of a known module are; nothing of an unknown one."""
    if is_conv1d_of_hugging_face(module):
        return _conv1d_of_hugging_face(module)
    for classes, describe in _KNOWN:
        if isinstance(module, classes):
            return describe(module)
    if is_norm(module):
        return {name: NORM for name, _ in module.named_parameters(recurse=False)}
    return {}


def norm_eps(module: nn.Module) -> float | None:
    """Return what a norm adds to the variance, where it says so."""
    for word in ("eps", "variance_epsilon", "epsilon"):
        found = getattr(module, word, None)
        if isinstance(found, float):
            return found
    return torch.finfo(torch.float32).eps if isinstance(module, nn.RMSNorm) else None

"""The layers of the batched decoder. Every tensor has a leading axis of models, written M.

Hidden states are [M, B*T, d], so that each linear map is one batched matrix product.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from initrate.model._config import ModelConfig
from initrate.model._fused import causal_attention, gelu, mix, relu_

Weights = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Affine:
    """Hidden states `values * gain + bias` [M, N, d], with the product not carried out.

    The gain and bias of a norm go into the weights of the linear maps that follow it, which are
    small, and never touch the hidden states, which are large.
    """

    values: Tensor
    gain: Tensor | None = None
    """[M, 1, d]"""
    bias: Tensor | None = None
    """[M, 1, d]"""

    def at(self, values: Tensor) -> Affine:
        """Return other values under the same gain and bias."""
        return Affine(values, self.gain, self.bias)

    def applied(self) -> Tensor:
        """Return the hidden states themselves."""
        if self.gain is None:
            return self.values
        if self.bias is None:
            return self.values * self.gain
        return torch.addcmul(self.bias, self.values, self.gain)


def norm(config: ModelConfig, x: Tensor, weights: Weights, name: str) -> Affine:
    """Return the layer norm or RMS norm of x [M, N, d], each model with its own gain and bias."""
    gain = weights[f"{name}.weight"][:, None]
    if config.norm == "rmsnorm":
        return Affine(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + config.norm_eps), gain)
    unit = functional.layer_norm(x, (x.shape[-1],), eps=config.norm_eps)
    return Affine(unit, gain, weights[f"{name}.bias"][:, None])


def linear(x: Affine, weight: Tensor, bias: Tensor | None, *, onto: Tensor | None = None) -> Tensor:
    """Return x [M, N, d_in] times weight [M, d_in, d_out], plus bias [M, d_out], plus `onto`."""
    offset = None if bias is None else bias[:, None]
    if x.bias is not None:
        shift = torch.bmm(x.bias, weight)
        offset = shift if offset is None else offset + shift
    if x.gain is not None:
        weight = x.gain.transpose(1, 2) * weight
    if onto is not None:
        offset = onto if offset is None else onto + offset
    if offset is None:
        return torch.bmm(x.values, weight)
    return torch.baddbmm(offset, x.values, weight)


def _named_linear(x: Affine, weights: Weights, name: str, *, onto: Tensor | None = None) -> Tensor:
    return linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"), onto=onto)


def mlp(
    config: ModelConfig, x: Affine, weights: Weights, block: str, *, onto: Tensor | None = None
) -> Tensor:
    """Return the feed-forward map of x [M, N, d_model], plus `onto`, the same shape."""
    inner = _named_linear(x, weights, f"{block}.mlp.in")
    match config.activation:
        case "relu":
            inner = relu_(inner)
        case "gelu":
            inner = gelu(inner, "none")
        case "gelu_tanh":
            inner = gelu(inner, "tanh")
        case "swiglu":
            inner = functional.silu(_named_linear(x, weights, f"{block}.mlp.gate")) * inner
    return _named_linear(Affine(inner), weights, f"{block}.mlp.out", onto=onto)


@functools.lru_cache(maxsize=32)
@torch.inference_mode(False)  # What is remembered must serve training too.
def _rotation(
    length: int, d_k: int, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Cosine and sine [T, d_k] of rotary positions, base 10,000, halves rotated (2104.09864)."""
    frequency = 10_000.0 ** (-torch.arange(0, d_k, 2, dtype=torch.float64) / d_k)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency
    angle = torch.cat([angle, angle], -1)
    return angle.cos().to(device, dtype), angle.sin().to(device, dtype)


def _rotate(x: Tensor) -> Tensor:
    """Return x [..., T, d_k] turned by its positions."""
    cosine, sine = _rotation(x.shape[-2], x.shape[-1], x.dtype, x.device)
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat([-second, first], -1) * sine


def project(config: ModelConfig, x: Affine, weights: Weights, block: str) -> Tensor:
    """Return queries, keys and values of x [M, N, d_model] side by side in one product."""
    names = [f"{block}.attention.{part}" for part in ("query", "key", "value")]
    weight = torch.cat([weights[f"{name}.weight"] for name in names], -1)
    bias = None
    if f"{names[0]}.bias" in weights:
        bias = torch.cat([weights[f"{name}.bias"] for name in names], -1)
    return linear(x, weight, bias)


def _by_head(x: Tensor, length: int, n_heads: int) -> Tensor:
    """[M, B*T, H*d] -> [M*B*H, T, d], without a copy where there is one head."""
    n_models, n_rows, width = x.shape
    x = x.view(n_models * n_rows // length, length, n_heads, width // n_heads)
    return x.transpose(1, 2).reshape(-1, length, width // n_heads)


def attend(
    config: ModelConfig,
    qkv: Tensor,
    weights: Weights,
    block: str,
    length: int,
    *,
    onto: Tensor | None = None,
) -> Tensor:
    """Return the causal attention of every position, [M, B*T, d_model], of `project`'s result."""
    n_models, n_rows, _ = qkv.shape
    n_heads, d_k, d_v = config.n_heads, config.d_k, config.d_v
    parts = qkv.split([n_heads * d_k, n_heads * d_k, n_heads * d_v], -1)
    query, key, value = (_by_head(part, length, n_heads) for part in parts)
    if config.positions == "rotary":
        query, key = _rotate(query), _rotate(key)
    mixed = causal_attention(query, key, value)
    if n_heads > 1:
        mixed = mixed.view(-1, n_heads, length, d_v).transpose(1, 2)
    mixed = Affine(mixed.reshape(n_models, n_rows, n_heads * d_v))
    return _named_linear(mixed, weights, f"{block}.attention.output", onto=onto)


def attend_from_last(
    config: ModelConfig,
    x: Affine,
    last: Affine,
    weights: Weights,
    block: str,
    *,
    onto: Tensor,
) -> Tensor:
    """Return the attention of the last position alone, plus `onto`, both [M, B, d_model].

    `x` holds all positions [M, B*T, d_model], `last` the last ones [M, B, d_model].
    Keys and values are never formed: with one query q a sequence, q . (x W_K) = (q W_K^T) . x and
    sum_t p_t (x_t W_V) = (sum_t p_t x_t) W_V. What adds the same to all scores of a query (a key
    bias, the bias of x) is taken away by softmax; a value bias is added once, for the weights sum
    to one.
    """
    n_models, batch, d_model = last.values.shape
    n_heads, d_k, d_v = config.n_heads, config.d_k, config.d_v
    name = f"{block}.attention"
    query = _named_linear(last, weights, f"{name}.query") * d_k**-0.5
    # [M, B, H*d_k] -> [M*H, B, d_k]: each head against its own block of W_K.
    query = query.view(n_models, batch, n_heads, d_k).transpose(1, 2).reshape(-1, batch, d_k)
    key = weights[f"{name}.key.weight"].view(n_models, d_model, n_heads, d_k)
    key = key.permute(0, 2, 3, 1).reshape(-1, d_k, d_model)
    query = torch.bmm(query, key).view(n_models, n_heads, batch, d_model).transpose(1, 2)
    if x.gain is not None:
        query = query * x.gain[:, None]
    query = query.reshape(n_models * batch, n_heads, d_model)
    mixed = mix(query, x.values.view(n_models * batch, -1, d_model))
    mixed = mixed.view(n_models, batch, n_heads, d_model).transpose(1, 2)
    mixed = x.at(mixed.reshape(n_models, -1, d_model)).applied().view(-1, batch, d_model)
    value = weights[f"{name}.value.weight"].view(n_models, d_model, n_heads, d_v)
    mixed = torch.bmm(mixed, value.transpose(1, 2).reshape(-1, d_model, d_v))
    mixed = mixed.view(n_models, n_heads, batch, d_v).transpose(1, 2)
    mixed = mixed.reshape(n_models, batch, n_heads * d_v)
    if f"{name}.value.bias" in weights:
        mixed = mixed + weights[f"{name}.value.bias"][:, None]
    return _named_linear(Affine(mixed), weights, f"{name}.output", onto=onto)

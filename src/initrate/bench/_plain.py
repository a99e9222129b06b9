"""The plain way: one textbook decoder, as an `nn.Module`.

It shares no code with the batched engine, only the meaning of `ModelConfig`. The tests take it as
the oracle of the engine's numbers, the benchmark as the way to be faster than.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from initrate.model import ModelConfig


class Attention(nn.Module):
    """Causal attention over `n_heads` heads, with rotary positions where the shape says so."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.n_heads = config.n_heads
        self.rotary = config.positions == "rotary"
        bias = config.biases in ("blocks", "all")
        self.query = nn.Linear(config.d_model, config.n_heads * config.d_k, bias=bias)
        self.key = nn.Linear(config.d_model, config.n_heads * config.d_k, bias=bias)
        self.value = nn.Linear(config.d_model, config.n_heads * config.d_v, bias=bias)
        self.output = nn.Linear(config.n_heads * config.d_v, config.d_model, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the attention output [batch, length, d_model] of x of the same shape."""
        batch, length, _ = x.shape
        query, key, value = (
            linear(x).view(batch, length, self.n_heads, -1).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
        if self.rotary:
            query, key = rotate(query), rotate(key)
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        attention = scores.masked_fill(future, -math.inf).softmax(dim=-1)
        return self.output((attention @ value).transpose(1, 2).reshape(batch, length, -1))


def rotate(x: Tensor) -> Tensor:
    """Return x [batch, head, length, d_k] with its halves rotated by position (base 10,000)."""
    length, half = x.shape[2], x.shape[3] // 2
    frequency = 10_000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency
    cosine, sine = angle.cos().to(x), angle.sin().to(x)
    left, right = x[..., :half], x[..., half:]
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine], dim=-1)


class FeedForward(nn.Module):
    """Two linear maps around an activation; SwiGLU has a third, the gate."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        bias = config.biases in ("blocks", "all")
        self.activation = config.activation
        self.add_module("in", nn.Linear(config.d_model, config.d_ff, bias=bias))
        if config.activation == "swiglu":
            self.gate = nn.Linear(config.d_model, config.d_ff, bias=bias)
        self.out = nn.Linear(config.d_ff, config.d_model, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the feed-forward output, of the shape of x."""
        hidden = getattr(self, "in")(x)
        if self.activation == "relu":
            hidden = hidden.relu()
        elif self.activation == "gelu":
            hidden = functional.gelu(hidden)
        elif self.activation == "gelu_tanh":
            hidden = functional.gelu(hidden, approximate="tanh")
        else:
            hidden = functional.silu(self.gate(x)) * hidden
        return self.out(hidden)


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps), times a weight; no bias."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised x."""
        return x / torch.sqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


def norm(config: ModelConfig) -> nn.Module:
    """Return a norm over d_model of the kind that the shape says."""
    if config.norm == "rmsnorm":
        return RMSNorm(config.d_model, config.norm_eps)
    return nn.LayerNorm(config.d_model, eps=config.norm_eps)


class Block(nn.Module):
    """One decoder block, pre-norm or post-norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.post = config.norm_position == "post"
        self.attention = Attention(config)
        self.mlp = FeedForward(config)
        self.norm_1 = norm(config)
        self.norm_2 = norm(config)

    def forward(self, x: Tensor) -> Tensor:
        """Return the residual stream after this block."""
        if self.post:
            x = self.norm_1(x + self.attention(x))
            return self.norm_2(x + self.mlp(x))
        x = x + self.attention(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class PlainDecoder(nn.Module):
    """One decoder; parameter names are the canonical ones, linear weights lie [out, in]."""

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.config = config
        self.token_embedding = nn.Embedding(vocabulary, config.d_model)
        if config.positions == "learned":
            self.position_embedding = nn.Embedding(config.max_positions, config.d_model)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        if config.norm_position == "pre":
            self.final_norm = norm(config)
        bias = config.biases in ("unembedding", "all")
        self.unembedding = nn.Linear(config.d_model, vocabulary, bias=bias)
        if config.tied:
            self.unembedding.weight = self.token_embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits [batch, length, vocabulary] of tokens [batch, length]."""
        x = self.token_embedding(tokens)
        if self.config.positions == "learned":
            x = x + self.position_embedding.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        if self.config.norm_position == "pre":
            x = self.final_norm(x)
        return self.unembedding(x)

    def load_canonical(self, weights: Mapping[str, NDArray[np.floating]]) -> None:
        """Copy one model's canonical weights in; missing, unknown or misshapen ones raise."""
        state = {
            name: torch.from_numpy(np.ascontiguousarray(array.T if is_linear(name) else array))
            for name, array in weights.items()
        }
        if self.config.tied:
            state["unembedding.weight"] = state["token_embedding.weight"]
        self.load_state_dict(state)

    def canonical(self) -> dict[str, NDArray[np.floating]]:
        """Return the weights by canonical name and in canonical layout."""
        return {
            name: (p.detach().T if is_linear(name) else p.detach()).numpy().copy()
            for name, p in self.named_parameters()
        }


def is_linear(name: str) -> bool:
    """Return whether the tensor is the weight of a linear map, which torch keeps transposed.

    >>> is_linear("blocks.0.mlp.in.weight"), is_linear("token_embedding.weight")
    (True, False)
    """
    inside = name == "unembedding.weight" or ".attention." in name or ".mlp." in name
    return inside and name.endswith(".weight")

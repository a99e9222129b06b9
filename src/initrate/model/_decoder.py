"""The decoder: many models of one shape, as one batched program."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from initrate.model._config import ModelConfig
from initrate.model._fused import at_last_position, keep_last
from initrate.model._layers import (
    Affine,
    Weights,
    attend,
    attend_from_last,
    linear,
    mlp,
    norm,
    project,
)


def logits(
    config: ModelConfig,
    weights: Weights,
    tokens: Tensor,
    *,
    positions: Literal["last", "all"] = "last",
) -> Tensor:
    """Return logits [M, B, V] at the last position, or [M, B, T, V] at all, of tokens [M, B, T].

    `weights` maps canonical names to [M, *shape] (`tensor_specs`). What only the last position
    needs is computed for it alone; the numbers are those of the plain decoder.
    """
    n_models, batch, length = tokens.shape
    last = positions == "last"
    x, qkv = _first_layer(config, weights, tokens, project_all=config.n_layers > 1 or not last)
    for layer in range(config.n_layers):
        at_last = last and layer == config.n_layers - 1
        x = _block(config, weights, f"blocks.{layer}", x, length, at_last=at_last, qkv=qkv)
        qkv = None
    out = unembed(config, weights, x)
    return out if last else out.view(n_models, batch, length, -1)


def _first_layer(
    config: ModelConfig, weights: Weights, tokens: Tensor, *, project_all: bool
) -> tuple[Tensor, Tensor | None]:
    """Return the embedded tokens [M, B*T, d] and, where they are needed, their projections.

    The first layer sees at most V*T distinct inputs. Where a batch holds twice as many tokens or
    more, queries, keys and values of all distinct inputs are computed once and looked up.
    """
    n_models, batch, length = tokens.shape
    embedding = weights["token_embedding.weight"]
    vocabulary, d_model = embedding.shape[1:]
    model = torch.arange(n_models, device=tokens.device)[:, None, None]
    learned = config.positions == "learned"
    if not (project_all and 2 * vocabulary <= batch):
        entry = (tokens + model * vocabulary).flatten()
        x = embedding.reshape(-1, d_model).index_select(0, entry)
        x = x.view(n_models, batch, length, d_model)
        if learned:
            x = x + weights["position_embedding.weight"][:, None, :length]
        return x.view(n_models, batch * length, d_model), None
    entry = tokens * length + torch.arange(length, device=tokens.device)
    entry = (entry + model * (vocabulary * length)).flatten()
    table = embedding[:, :, None].expand(-1, -1, length, -1)
    if learned:
        table = table + weights["position_embedding.weight"][:, None, :length]
    table = table.reshape(n_models, vocabulary * length, d_model)
    qkv = project(config, _input(config, table, weights, "blocks.0"), weights, "blocks.0")
    x, qkv = (part.view(-1, part.shape[-1]).index_select(0, entry) for part in (table, qkv))
    return x.view(n_models, batch * length, -1), qkv.view(n_models, batch * length, -1)


def _input(config: ModelConfig, x: Tensor, weights: Weights, block: str) -> Affine:
    """Return what the attention of a block sees of the hidden states."""
    return (
        norm(config, x, weights, f"{block}.norm_1") if config.norm_position == "pre" else Affine(x)
    )


def _block(
    config: ModelConfig,
    weights: Weights,
    block: str,
    x: Tensor,
    length: int,
    *,
    at_last: bool,
    qkv: Tensor | None,
) -> Tensor:
    """Return the next hidden states: [M, B*T, d], or [M, B, d] of the last position alone."""
    if not at_last:
        if qkv is None:
            qkv = project(config, _input(config, x, weights, block), weights, block)
        x = attend(config, qkv, weights, block, length, onto=x)
    elif config.positions == "rotary":
        # A turned key depends on its position: it cannot be moved onto the query.
        qkv = project(config, _input(config, x, weights, block), weights, block)
        attended = at_last_position(attend(config, qkv, weights, block, length), length)
        x = at_last_position(x, length) + attended
    else:
        x, x_last = keep_last(x, length)
        seen = _input(config, x, weights, block)
        last = x_last
        if config.norm_position == "pre":
            values, last = keep_last(seen.values, length)
            seen = seen.at(values)
        x = attend_from_last(config, seen, seen.at(last), weights, block, onto=x_last)
    if config.norm_position == "pre":
        return mlp(config, norm(config, x, weights, f"{block}.norm_2"), weights, block, onto=x)
    x = norm(config, x, weights, f"{block}.norm_1").applied()
    x = mlp(config, Affine(x), weights, block, onto=x)
    return norm(config, x, weights, f"{block}.norm_2").applied()


def unembed(config: ModelConfig, weights: Weights, x: Tensor) -> Tensor:
    """Return logits [M, N, V] of hidden states [M, N, d_model]."""
    seen = norm(config, x, weights, "final_norm") if config.norm_position == "pre" else Affine(x)
    if config.tied:
        matrix = weights["token_embedding.weight"].transpose(1, 2)
    else:
        matrix = weights["unembedding.weight"]
    return linear(seen, matrix, weights.get("unembedding.bias"))


def block_to_skip(config: ModelConfig, weights: Weights, tokens: Tensor) -> Tensor:
    """Return [M]: the size of the first feed-forward block's output over what it is added to.

    Sizes are root mean squares over all positions of tokens [M, B, T]. Equal gamma is not an equal
    network: this ratio differs between pre- and post-norm and with the width.
    """
    length = tokens.shape[-1]
    x, _ = _first_layer(config, weights, tokens, project_all=False)
    qkv = project(config, _input(config, x, weights, "blocks.0"), weights, "blocks.0")
    x = attend(config, qkv, weights, "blocks.0", length, onto=x)
    if config.norm_position == "pre":
        block = mlp(config, norm(config, x, weights, "blocks.0.norm_2"), weights, "blocks.0")
    else:
        x = norm(config, x, weights, "blocks.0.norm_1").applied()
        block = mlp(config, Affine(x), weights, "blocks.0")
    return (block.square().mean((1, 2)) / x.square().mean((1, 2))).sqrt()

"""All models at once by JAX: jit of vmap, a scan over the steps of a round, AdamW of optax."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from initrate.bench._problem import OnRound, Problem
from initrate.model import ModelConfig
from initrate.training import Training

Weights = dict[str, jax.Array]
"""The canonical weights of one model; matrices lie [d_in, d_out]."""


def run(problem: Problem, on_round: OnRound) -> None:
    """Train until `on_round` says no."""
    config, training = problem.size.model, problem.training
    optimizer = _optimizer(training)
    weights = {name: jnp.asarray(array) for name, array in problem.weights().items()}
    state = (weights, jax.vmap(optimizer.init)(weights))

    def update(state: Any, tokens: jax.Array, targets: jax.Array) -> tuple[Any, jax.Array]:
        weights, moments = state
        loss_of = functools.partial(loss, config, training)
        value, gradients = jax.value_and_grad(loss_of)(weights, tokens, targets)
        moves, moments = optimizer.update(gradients, moments, weights)
        return (optax.apply_updates(weights, moves), moments), value

    @functools.partial(jax.jit, donate_argnums=0)
    def take_round(state: Any, tokens: jax.Array, targets: jax.Array) -> tuple[Any, jax.Array]:
        def step(state: Any, batch: tuple[jax.Array, jax.Array]) -> tuple[Any, jax.Array]:
            return jax.vmap(update)(state, *batch)

        state, losses = jax.lax.scan(step, state, (tokens, targets))
        return state, losses.mean(0)

    first_step, going = 0, True
    while going:
        steps = range(first_step, first_step + problem.steps)
        batches = zip(*map(problem.batch, steps), strict=True)
        tokens, targets = (np.stack(part).astype(np.int32) for part in batches)
        state, losses = jax.block_until_ready(take_round(state, tokens, targets))
        first_step = steps.stop
        going = on_round(np.asarray(losses).tolist())


def _optimizer(training: Training) -> optax.GradientTransformation:
    """Return the recipe of the benchmark: a constant rate, decay on everything, clipping."""
    adamw = optax.adamw(
        training.lr,
        b1=training.beta1,
        b2=training.beta2,
        eps=training.eps,
        weight_decay=training.weight_decay,
    )
    if training.clip_norm is None:
        return adamw
    return optax.chain(optax.clip_by_global_norm(training.clip_norm), adamw)


def loss(
    config: ModelConfig,
    training: Training,
    weights: Weights,
    tokens: jax.Array,
    targets: jax.Array,
) -> jax.Array:
    """Return the mean cross-entropy of one model, at the last position or at all."""
    out = logits(config, weights, tokens)
    if training.loss == "last":
        out = out[:, -1]
    else:
        targets = jnp.concatenate([tokens[:, 1:], targets[:, None]], 1)
    return optax.softmax_cross_entropy_with_integer_labels(out, targets).mean()


def logits(config: ModelConfig, weights: Weights, tokens: jax.Array) -> jax.Array:
    """Return the logits [batch, length, vocabulary] of one model for tokens [batch, length]."""
    x = weights["token_embedding.weight"][tokens]
    if config.positions == "learned":
        x = x + weights["position_embedding.weight"][: tokens.shape[1]]
    norm = functools.partial(_norm, config, weights)
    for layer in range(config.n_layers):
        block = f"blocks.{layer}"
        attention = functools.partial(_attention, config, weights, f"{block}.attention")
        mlp = functools.partial(_mlp, config, weights, f"{block}.mlp")
        if config.norm_position == "post":
            x = norm(f"{block}.norm_1", x + attention(x))
            x = norm(f"{block}.norm_2", x + mlp(x))
        else:
            x = x + attention(norm(f"{block}.norm_1", x))
            x = x + mlp(norm(f"{block}.norm_2", x))
    if config.norm_position == "pre":
        x = norm("final_norm", x)
    return _linear(weights, "unembedding", x)


def _linear(weights: Weights, name: str, x: jax.Array) -> jax.Array:
    out = x @ weights[f"{name}.weight"]
    return out + weights[f"{name}.bias"] if f"{name}.bias" in weights else out


def _norm(config: ModelConfig, weights: Weights, name: str, x: jax.Array) -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    unit = (x - mean) * jax.lax.rsqrt(variance + config.norm_eps)
    return unit * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _attention(config: ModelConfig, weights: Weights, name: str, x: jax.Array) -> jax.Array:
    batch, length, _ = x.shape
    query, key, value = (
        _linear(weights, f"{name}.{part}", x).reshape(batch, length, config.n_heads, -1)
        for part in ("query", "key", "value")
    )
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / math.sqrt(config.d_k)
    future = jnp.triu(jnp.ones((length, length), bool), 1)
    share = jax.nn.softmax(jnp.where(future, -jnp.inf, scores), -1)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", share, value)
    return _linear(weights, f"{name}.output", mixed.reshape(batch, length, -1))


def _mlp(config: ModelConfig, weights: Weights, name: str, x: jax.Array) -> jax.Array:
    hidden = _linear(weights, f"{name}.in", x)
    if config.activation == "relu":
        hidden = jax.nn.relu(hidden)
    else:
        hidden = jax.nn.gelu(hidden, approximate=config.activation == "gelu_tanh")
    return _linear(weights, f"{name}.out", hidden)

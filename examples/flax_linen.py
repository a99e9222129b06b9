"""γ and weight decay with the params of Flax Linen, which hold no modules themselves.

Runs in seconds on a CPU: `python examples/flax_linen.py`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn

from initrate.frameworks.jax import apply, decay_mask

STEPS, WIDTH, CLASSES = 30, 32, 5


class Model(nn.Module):
    """Two residual layers between two maps."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Return the logits [batch, classes] of sequences [batch, length, width]."""
        x = nn.Dense(WIDTH)(x)
        for _ in range(2):
            x = x + nn.MultiHeadDotProductAttention(4)(nn.LayerNorm()(x))
        return nn.Dense(CLASSES, name="head")(x.mean(axis=1))


def main() -> dict[str, float]:
    """Train a small model and return what came of it."""
    x = jax.random.normal(jax.random.key(0), (128, 4, WIDTH))
    labels = jnp.argmax(x.mean(axis=1)[:, :CLASSES], axis=-1)
    model = Model()
    params = model.init(jax.random.key(1), x)["params"]

    # The module says which of its parts makes which of the params; nothing is computed for it.
    params, audit = apply(params, gamma=0.7, seed=0, module=model, example=x)
    audit.raise_for_findings()
    mask = decay_mask(params, module=model, example=x)
    transform = optax.adamw(3e-3, weight_decay=0.1, mask=mask)
    state = transform.init(params)

    def loss_of(params: Any) -> jax.Array:
        logits: Any = model.apply({"params": params}, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    @jax.jit
    def step(params: Any, state: optax.OptState) -> tuple:
        loss, gradients = jax.value_and_grad(loss_of)(params)
        updates, state = transform.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    losses = []
    for _ in range(STEPS):
        params, state, loss = step(params, state)
        losses.append(float(loss))
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    return {"first": losses[0], "last": losses[-1], "gamma": audit.gamma_by_role()["query"]}


if __name__ == "__main__":
    main()

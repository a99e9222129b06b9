"""γ and weight decay with Equinox: a new module with drawn weights, and a mask for optax.

Runs in seconds on a CPU: `python examples/equinox_module.py`.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from initrate.frameworks.jax import apply, decay_mask

STEPS, WIDTH, CLASSES = 30, 32, 5


class Model(eqx.Module):
    """An attention and a map to classes."""

    attention: eqx.nn.MultiheadAttention
    head: eqx.nn.Linear

    def __init__(self, key: jax.Array) -> None:
        first, second = jax.random.split(key)
        self.attention = eqx.nn.MultiheadAttention(4, WIDTH, key=first)
        self.head = eqx.nn.Linear(WIDTH, CLASSES, key=second)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return the logits [classes] of a sequence [length, width]."""
        return self.head((x + self.attention(x, x, x)).mean(axis=0))


def main() -> dict[str, float]:
    """Train a small model and return what came of it."""
    x = jax.random.normal(jax.random.key(0), (128, 4, WIDTH))
    labels = jnp.argmax(x.mean(axis=1)[:, :CLASSES], axis=-1)
    model, audit = apply(Model(jax.random.key(1)), gamma=0.7, seed=0)
    audit.raise_for_findings()

    params = eqx.filter(model, eqx.is_inexact_array)
    transform = optax.adamw(3e-3, weight_decay=0.1, mask=decay_mask(params))
    state = transform.init(params)

    def loss_of(model: Model) -> jax.Array:
        logits = jax.vmap(model)(x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    @eqx.filter_jit
    def step(model: Model, state: optax.OptState) -> tuple:
        loss, gradients = eqx.filter_value_and_grad(loss_of)(model)
        params = eqx.filter(model, eqx.is_inexact_array)
        updates, state = transform.update(gradients, state, params)
        return eqx.apply_updates(model, updates), state, loss

    losses = []
    for _ in range(STEPS):
        model, state, loss = step(model, state)
        losses.append(float(loss))
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    return {"first": losses[0], "last": losses[-1], "gamma": audit.gamma_by_role()["query"]}


if __name__ == "__main__":
    main()

"""γ and weight decay in a loop of Flax NNX: plan, draw in place, mask for optax, train.

Runs in seconds on a CPU: `python examples/flax_nnx.py`.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from initrate.frameworks.jax import apply, decay_mask, plan

STEPS, WIDTH, CLASSES = 30, 32, 5


class Model(nnx.Module):
    """A residual layer between two maps."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.embed = nnx.Linear(WIDTH, WIDTH, rngs=rngs)
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(4, WIDTH, decode=False, rngs=rngs)
        self.head = nnx.Linear(WIDTH, CLASSES, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return the logits [batch, classes] of sequences [batch, length, width]."""
        x = self.embed(x)
        return self.head((x + self.attention(self.norm(x))).mean(axis=1))


def main() -> dict[str, float]:
    """Train a small model and return what came of it."""
    x = jax.random.normal(jax.random.key(0), (128, 4, WIDTH))
    labels = jnp.argmax(x.mean(axis=1)[:, :CLASSES], axis=-1)
    model = Model(nnx.Rngs(0))

    for row in plan(model, gamma=0.7):
        print(f"{row.name:28} {row.role:18} {row.action:5} d_in {row.d_in} std {row.std}")
    model, audit = apply(model, gamma=0.7, seed=0)
    audit.raise_for_findings()

    # The bias of a head has two axes; the mask knows that it is none the less a bias.
    transform = optax.adamw(3e-3, weight_decay=0.1, mask=decay_mask(model))
    optimizer = nnx.Optimizer(model, transform, wrt=nnx.Param)

    @nnx.jit
    def step(model: Model, optimizer: nnx.Optimizer) -> jax.Array:
        def loss_of(model: Model) -> jax.Array:
            return optax.softmax_cross_entropy_with_integer_labels(model(x), labels).mean()

        loss, gradients = nnx.value_and_grad(loss_of)(model)
        optimizer.update(model, gradients)
        return loss

    losses = [float(step(model, optimizer)) for _ in range(STEPS)]
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    return {"first": losses[0], "last": losses[-1], "gamma": audit.gamma_by_role()["query"]}


if __name__ == "__main__":
    main()

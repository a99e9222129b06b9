"""γ and weight decay in Keras 3, on any backend: draw, exclude from decay, fit.

Runs in seconds on a CPU: `KERAS_BACKEND=jax python examples/keras_model.py`.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import layers

from initrate.frameworks.keras import apply, exclude_from_decay

STEPS, WIDTH, CLASSES = 20, 32, 5


def build() -> keras.Model:
    """Return an attention between two maps, built."""
    start = keras.Input((4, WIDTH))
    x = layers.Dense(WIDTH)(start)
    x = x + layers.MultiHeadAttention(4, WIDTH // 4)(x, x)
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    return keras.Model(start, layers.Dense(CLASSES, name="head")(x))


def main() -> dict[str, float]:
    """Train a small model and return what came of it."""
    keras.utils.set_random_seed(0)
    x = np.random.default_rng(0).standard_normal((128, 4, WIDTH)).astype(np.float32)
    labels = x.mean(axis=1)[:, :CLASSES].argmax(axis=-1)
    model = build()
    audit = apply(model, gamma=0.7, seed=0)
    audit.raise_for_findings()

    model.compile(
        keras.optimizers.AdamW(3e-3, weight_decay=0.1),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    # Before the first step: Keras takes exclusions then only.
    print("not decayed:", ", ".join(exclude_from_decay(model)))
    quiet: Any = 0
    history = model.fit(x, labels, batch_size=128, epochs=STEPS, verbose=quiet).history
    losses = history["loss"]
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    return {"first": losses[0], "last": losses[-1], "gamma": audit.gamma_by_role()["query"]}


if __name__ == "__main__":
    main()

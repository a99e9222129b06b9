"""What an optimizer of Keras does not decay."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

from initrate.errors import InputError
from initrate.frameworks.keras import Layout, exclude_from_decay


def model() -> Any:
    return keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            layers.Embedding(11, 8),
            layers.EinsumDense("abc,cde->abde", (6, 2, 4), bias_axes="de"),
            layers.LayerNormalization(),
            layers.Flatten(),
            layers.Dense(3, name="lm_head"),
        ]
    )


def optimizer() -> Any:
    return keras.optimizers.AdamW(1e-3, weight_decay=0.1)


REST = (
    "einsum_dense.bias",
    "layer_normalization.gamma",
    "layer_normalization.beta",
    "lm_head.bias",
)


def test_biases_and_norms_are_left_out_whatever_their_shape():
    made, chosen = model(), optimizer()
    assert exclude_from_decay(made, chosen) == REST
    kernel, bias = made.layers[1].kernel, made.layers[1].bias
    assert len(bias.shape) == 2
    chosen.build(made.trainable_variables)
    assert chosen._use_weight_decay(kernel) and not chosen._use_weight_decay(bias)
    zeros = [np.zeros(v.shape, "float32") for v in made.trainable_variables]
    bias.assign(np.ones(bias.shape))
    before = np.asarray(kernel.value)
    chosen.apply_gradients(zip(zeros, made.trainable_variables, strict=True))
    assert np.allclose(np.asarray(kernel.value), before * (1 - 1e-4))
    assert np.array_equal(np.asarray(bias.value), np.ones(bias.shape))


def test_policies_and_roles_have_an_effect():
    def left_out(**options: Any) -> set[str]:
        return set(exclude_from_decay(model(), optimizer(), **options))

    assert left_out() == set(REST)
    # What the map in between is must be said, for it might be an unembedding.
    with pytest.raises(InputError, match="decay apart"):
        left_out(decay="not_embeddings")
    layouts = [Layout("einsum_dense", kernel=("in", "out", "out"), role="mlp_in")]
    assert left_out(decay="not_embeddings", layouts=layouts) == {
        *REST,
        "embedding.embeddings",
        "lm_head.kernel",
    }
    assert left_out(decay="all") == set()
    assert left_out(by_role={"embedding": False}) == {*REST, "embedding.embeddings"}


def test_the_optimizer_of_a_compiled_model():
    made = model()
    made.compile(optimizer(), loss="mse")
    assert exclude_from_decay(made) == REST
    assert made.optimizer._exclude_from_weight_decay


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "optimizer is NoneType: give one of Keras, or compile the model"),
        ("adamw", "optimizer is str"),
        (keras.optimizers.Adam(), "has no weight_decay"),
    ],
)
def test_bad_optimizers(given: Any, message: str):
    with pytest.raises(InputError, match=message):
        exclude_from_decay(model(), given)


def test_a_built_optimizer_is_refused():
    made, chosen = model(), optimizer()
    chosen.build(made.trainable_variables)
    with pytest.raises(InputError, match="is built: exclude_from_decay comes before"):
        exclude_from_decay(made, chosen)


def test_bad_roles():
    with pytest.raises(InputError, match="expected True or False"):
        exclude_from_decay(model(), optimizer(), by_role={"query": 0.1})  # pyright: ignore[reportArgumentType]

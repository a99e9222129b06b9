"""Layers of Keras: axes by class, names that do not change, what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, ClassVar

import keras
import numpy as np
import pytest
from keras import layers

from initrate.errors import InputError
from initrate.frameworks.keras import Layout, plan
from initrate.rule import Rule


def rows(model: Any, **options: Any) -> dict[str, Any]:
    return {row.name: row for row in plan(model, gamma=0.5, **options)}


LAYERS = [
    (layers.Dense(5), (None, 8), "kernel", 8, "draw"),
    (layers.EinsumDense("abc,cde->abde", (None, 2, 4)), (None, 6, 8), "kernel", 8, "draw"),
    (layers.EinsumDense("abc,bcd->ad", 4), (None, 6, 8), "kernel", 48, "draw"),
    (layers.EinsumDense("abc,bcd->abd", (6, 4)), (None, 6, 8), "kernel", 8, "draw"),
    (layers.EinsumDense("...x,xy->...y", 4), (None, 6, 8), "kernel", 8, "draw"),
    (layers.Embedding(11, 8), (None,), "embeddings", 8, "draw"),
    (layers.Conv2D(6, 3), (None, 9, 9, 8), "kernel", 72, "draw"),
    (layers.Conv1D(6, 3, groups=2), (None, 9, 8), "kernel", 12, "draw"),
    (layers.Conv2DTranspose(6, 4, strides=2), (None, 9, 9, 8), "kernel", 32, "draw"),
    (layers.DepthwiseConv2D(3, depth_multiplier=2), (None, 9, 9, 8), "kernel", 9, "draw"),
    (layers.SeparableConv1D(6, 3), (None, 9, 8), "depthwise_kernel", 3, "draw"),
    (layers.SeparableConv1D(6, 3), (None, 9, 8), "pointwise_kernel", 8, "draw"),
    (layers.LSTM(6), (None, 5, 8), "cell.kernel", 8, "draw"),
    (layers.LSTM(6), (None, 5, 8), "cell.recurrent_kernel", 6, "draw"),
    (layers.Bidirectional(layers.GRU(6)), (None, 5, 8), "backward_layer.cell.kernel", 8, "draw"),
    (layers.ConvLSTM1D(6, 3), (None, 5, 9, 8), "cell.kernel", 24, "draw"),
    (layers.LayerNormalization(), (None, 8), "gamma", None, "keep"),
    (layers.RMSNormalization(), (None, 8), "scale", None, "keep"),
    (layers.BatchNormalization(), (None, 8), "beta", None, "keep"),
    (layers.PReLU(), (None, 8), "alpha", None, "keep"),
    (layers.Dense(5), (None, 8), "bias", 8, "zero"),
]


@pytest.mark.parametrize(("layer", "shape", "name", "d_in", "action"), LAYERS)
def test_d_in_comes_from_the_class(
    layer: Any, shape: Any, name: str, d_in: int | None, action: str
):
    if not layer.built:
        layer.build(shape)
    row = rows(layer)[name]
    assert (row.d_in, row.action) == (d_in, action)
    if action == "draw":
        assert d_in is not None
        assert row.std == pytest.approx(d_in**-0.5)


@pytest.mark.parametrize("kind", ["MultiHeadAttention", "GroupQueryAttention"])
def test_attention_has_its_roles_and_the_output_adds_up_all_heads(kind: str):
    heads = (3, 16) if kind == "MultiHeadAttention" else (16, 4, 2)
    layer = getattr(layers, kind)(*heads)
    layer.build((None, 5, 64), (None, 5, 64))
    found = rows(layer)
    n_heads, width = (3, 16) if kind == "MultiHeadAttention" else (4, 16)
    assert {name: (row.role, row.d_in) for name, row in found.items() if "kernel" in name} == {
        "query.kernel": ("query", 64),
        "key.kernel": ("key", 64),
        "value.kernel": ("value", 64),
        "attention_output.kernel": ("attention_output", n_heads * width),
    }


class Block(layers.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.attention = layers.MultiHeadAttention(2, 4)
        self.ffn = keras.Sequential([layers.Dense(16), layers.Dense(8)])
        self.norm = layers.LayerNormalization()

    def call(self, x: Any) -> Any:
        return self.ffn(self.norm(x + self.attention(x, x)))


class Model(keras.Model):
    def __init__(self, tied: bool = True) -> None:
        super().__init__()
        self.embed = layers.ReversibleEmbedding(11, 8, tie_weights=tied)
        self.blocks = [Block(), Block()]
        self.frozen = layers.Dense(8, trainable=False)
        self._first = layers.Dense(8, name="first")

    def call(self, tokens: Any) -> Any:
        x = self._first(self.frozen(self.embed(tokens)))
        for block in self.blocks:
            x = block(x)
        return self.embed(x, reverse=True)


def model(**options: Any) -> Model:
    made = Model(**options)
    made(np.zeros((2, 4), "int32"))
    return made


def test_names_are_those_of_attributes_lists_and_layers():
    found = rows(model())
    assert {"embed.embeddings", "first.kernel", "blocks.1.norm.gamma"} <= set(found)
    assert found["blocks.0.attention.query.kernel"].role == "query"
    # Names that Keras makes up tell no role.
    assert found["blocks.0.ffn.dense_1.kernel"].role == "dense?"
    assert found["frozen.kernel"].reason == "frozen: trainable is False"
    assert found["blocks.1.norm.gamma"].record.eps == 1e-3


def test_the_same_model_has_the_same_names_however_many_were_made():
    def functional() -> Any:
        start = keras.Input((8,))
        middle = layers.Dense(8)(layers.Dense(8)(start))
        return keras.Model(start, layers.Dense(4, name="head")(middle))

    first, second = functional(), functional()
    assert sorted(rows(first)) == sorted(rows(second))
    assert {"dense.kernel", "dense_1.kernel", "head.kernel"} <= set(rows(second))


def test_tied_embeddings_are_one_row():
    assert [row.role for name, row in rows(model()).items() if "embed" in name] == [
        "token_embedding"
    ]
    found = rows(model(tied=False))
    back = found["embed.reverse_embeddings"]
    assert (back.role, back.d_in, back.shape) == ("unembedding", 8, (8, 11))


def test_a_layer_at_two_places_is_one_row():
    shared = layers.Dense(8)
    made = keras.Sequential([keras.Input((8,)), keras.Sequential([shared]), shared])
    found = plan(made, gamma=0.5)
    assert [row.record.aliases for row in found] == [("dense.kernel",), ("dense.bias",)]


def test_layers_are_counted_for_the_residual_division():
    found = {row.name: row for row in plan(model(), rule=Rule(gamma=0.5, residual="sqrt_2L"),
                                           unknown="keep")}  # fmt: skip
    assert found["blocks.0.attention.attention_output.kernel"].std == pytest.approx(8**-0.5 / 2)


def test_adapters():
    layer = layers.Dense(6)
    layer.build((None, 8))
    layer.enable_lora(2)
    found = rows(layer)
    assert {name: (row.action, row.d_in) for name, row in found.items()} == {
        "kernel": ("keep", 8), "bias": ("zero", 8),
        "lora_kernel_a": ("draw", 8), "lora_kernel_b": ("zero", 2),
    }  # fmt: skip


class Own(layers.Layer):
    def build(self, input_shape: Any) -> None:
        self.w = self.add_weight(shape=(input_shape[-1], 4), name="w")

    def call(self, x: Any) -> Any:
        return x @ self.w


class Taught(Own):
    initrate_layout: ClassVar = {"w": ("in", "out"), "role": "mlp_in"}


def test_an_own_layer_is_refused_until_it_is_taught():
    own, taught = Own(), Taught()
    for layer in (own, taught):
        layer.build((None, 8))
    assert rows(own)["w"].reason == "is a weight of Own, whose layout is not known"
    assert rows(own, layouts=[Layout(Own, w=("in", "out"))])["w"].d_in == 8
    assert (rows(taught)["w"].d_in, rows(taught)["w"].role) == (8, "mlp_in")
    assert rows(own, unknown="keep")["w"].action == "keep"


def test_norms_of_weights_and_quantized_layers_are_refused():
    made = keras.Sequential([keras.Input((8,)), layers.SpectralNormalization(layers.Dense(4))])
    (kernel,) = [row for name, row in rows(made).items() if name.endswith("layer.kernel")]
    assert "normalized by SpectralNormalization" in kernel.reason


QUANTIZED = """
import json, keras
from initrate.frameworks.keras import plan
layer = keras.layers.Dense(4)
layer.build((None, 8))
layer.quantize("int8")
print(json.dumps({row.name: row.reason for row in plan(layer, gamma=0.5)}))
"""


def test_a_quantized_layer_is_refused_by_its_class():
    # In a process of its own: Keras warns as it quantizes.
    done = subprocess.run(
        [sys.executable, "-c", QUANTIZED],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert "quantized Dense" in found["kernel"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "model is int: expected a model or layer of Keras 3"),
        (layers.Dropout(0.1), "has no weights"),
        (layers.Dense(4), "is not built"),
        (keras.Sequential([layers.Dense(4)]), "is not built"),
        (Model(), "is not built"),
    ],
)
def test_what_has_no_weights_is_refused(given: Any, message: str):
    with pytest.raises(InputError, match=message):
        plan(given, gamma=0.5)


def test_include_and_exclude():
    found = rows(model(), include="blocks.1.*", exclude="*.key.*")
    drawn = [name for name, row in found.items() if row.action == "draw"]
    assert drawn and all(n.startswith("blocks.1.") and ".key." not in n for n in drawn)

"""The same rule gives the same std in torch, in all kinds of JAX trees, and in Keras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest
import torch
from flax import linen as nn
from flax import nnx

import initrate.frameworks.jax as for_jax
import initrate.frameworks.keras as for_keras
import initrate.frameworks.torch as for_torch
from initrate.measure import std_interval
from initrate.rule import Rule

# Heads of 16 times 3 differ from the width, so that no fan can be taken for another.
WIDTH, HEADS, HEAD = 64, 3, 16
KEY = jax.random.key(0)
RULE = Rule(gamma=0.7, gamma_by_role={"vo": 0.9})
EXPECTED = {"query": WIDTH**-0.7, "value": WIDTH**-0.9, "output": (HEADS * HEAD) ** -0.9}
Values = dict[str, Any]


def torch_values() -> Values:
    class Attention(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q_proj = torch.nn.Linear(WIDTH, HEADS * HEAD)
            self.v_proj = torch.nn.Linear(WIDTH, HEADS * HEAD)
            self.o_proj = torch.nn.Linear(HEADS * HEAD, WIDTH)

    model = torch.nn.ModuleDict({"attention": Attention()})
    assert for_torch.apply(model, rule=RULE, seed=0).ok
    found = dict(model.named_parameters())
    return {
        name: found[f"attention.{letter}_proj.weight"].detach().numpy()
        for name, letter in (("query", "q"), ("value", "v"), ("output", "o"))
    }


def nnx_values() -> Values:
    model = nnx.MultiHeadAttention(HEADS, WIDTH, qkv_features=HEADS * HEAD, rngs=nnx.Rngs(0))
    assert for_jax.apply(model, rule=RULE, seed=0)[1].ok
    return {
        "query": model.query.kernel.get_value(),
        "value": model.value.kernel.get_value(),
        "output": model.out.kernel.get_value(),
    }


def linen_values() -> Values:
    module = nn.MultiHeadDotProductAttention(HEADS, qkv_features=HEADS * HEAD)
    x = jnp.zeros((1, 2, WIDTH))
    params = module.init(KEY, x)["params"]
    new, found = for_jax.apply(params, rule=RULE, seed=0, module=module, example=x)
    assert found.ok
    return {name: new[part]["kernel"] for name, part in
            (("query", "query"), ("value", "value"), ("output", "out"))}  # fmt: skip


def equinox_values() -> Values:
    model = eqx.nn.MultiheadAttention(HEADS, WIDTH, qk_size=HEAD, vo_size=HEAD, key=KEY)
    new, found = for_jax.apply(model, rule=RULE, seed=0)
    assert found.ok
    return {
        "query": new.query_proj.weight,
        "value": new.value_proj.weight,
        "output": new.output_proj.weight,
    }


def tree_values() -> Values:
    sides = {"query": (WIDTH, HEADS, HEAD), "value": (WIDTH, HEADS, HEAD),
             "output": (HEADS, HEAD, WIDTH)}  # fmt: skip
    tree = {name: {"w": np.zeros(shape, np.float32)} for name, shape in sides.items()}
    layouts = [
        for_jax.Layout("query", w=("in", "out", "out"), role="query"),
        for_jax.Layout("value", w=("in", "out", "out"), role="value"),
        for_jax.Layout("output", w=("in", "in", "out"), role="attention_output"),
    ]
    new, found = for_jax.apply(tree, rule=RULE, seed=0, layouts=layouts)
    assert found.ok
    return {name: new[name]["w"] for name in tree}


def keras_values() -> Values:
    layer = keras.layers.MultiHeadAttention(HEADS, HEAD)
    layer.build((None, 2, WIDTH), (None, 2, WIDTH))
    assert for_keras.apply(layer, rule=RULE, seed=0).ok
    kernels = {weight.path.split("/")[-2]: np.asarray(weight.value) for weight in layer.weights
               if weight.name == "kernel"}  # fmt: skip
    return {
        "query": kernels["query"],
        "value": kernels["value"],
        "output": kernels["attention_output"],
    }


KINDS: list[Callable[[], Values]] = [
    torch_values,
    nnx_values,
    linen_values,
    equinox_values,
    tree_values,
    keras_values,
]


@pytest.mark.parametrize("values", KINDS, ids=lambda kind: kind.__name__)
def test_the_measured_std_is_that_of_the_formula(values: Callable[[], Values]):
    found = values()
    for name, std in EXPECTED.items():
        array = np.asarray(found[name], np.float64)
        low, high = std_interval(std, array.size)
        assert low < float(np.sqrt((array**2).mean())) < high, name


def test_one_name_has_the_same_bits_in_all():
    rule = Rule(gamma=0.5)
    weight = {"fc": {"weight": jnp.zeros((64, 8))}}
    layout = for_jax.Layout("fc", weight=("out", "in"))
    drawn, _ = for_jax.apply(weight, rule=rule, seed=7, layouts=[layout])
    model = torch.nn.ModuleDict({"fc": torch.nn.Linear(8, 64, bias=False)})
    for_torch.apply(model, rule=rule, seed=7)
    (parameter,) = model.parameters()
    assert np.array_equal(drawn["fc"]["weight"], parameter.detach().numpy())

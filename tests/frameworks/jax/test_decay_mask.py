"""Masks for optax: by role, in the structure of what is trained."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import pytest
from flax import linen as nn
from flax import nnx

from initrate.errors import InputError
from initrate.frameworks.jax import Layout, decay_mask


class Model(nnx.Module):
    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.embed = nnx.Embed(11, 8, rngs=rngs)
        self.attn = nnx.MultiHeadAttention(2, 8, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)


def decayed(**options: Any) -> set[str]:
    mask = nnx.to_flat_state(decay_mask(Model(), **options))
    return {".".join(map(str, path)) for path, decays in mask if decays}


KERNELS = {f"attn.{name}.kernel" for name in ("query", "key", "value", "out")}


def test_biases_of_heads_do_not_decay_though_they_have_two_axes():
    model: Any = Model()
    assert model.attn.query.bias.ndim == 2
    assert decayed() == KERNELS | {"embed.embedding"}


@pytest.mark.parametrize("pure", [False, True])
def test_optax_decays_what_the_mask_says(pure: bool):
    model: Any = Model()
    model.attn.query.bias.set_value(jnp.ones((2, 4)))
    transform = optax.add_decayed_weights(0.1, mask=decay_mask(model))
    # An nnx.Optimizer gives optax the variables, or their arrays.
    state: Any = nnx.state(model, nnx.Param)
    state = nnx.as_pure(state) if pure else state
    zero = jax.tree.map(jnp.zeros_like, state)
    updates: Any
    updates, _ = transform.update(zero, transform.init(state), state)
    kernel = state["attn"]["query"]["kernel"]
    assert jnp.allclose(updates["attn"]["query"]["kernel"][...], 0.1 * kernel[...])
    assert not updates["attn"]["query"]["bias"][...].any()


def test_policies_and_roles_have_an_effect():
    base = decayed()
    assert decayed(decay="not_embeddings") == base - {"embed.embedding"}
    assert decayed(decay="all") > base
    assert decayed(by_role={"qk": False}) == base - {"attn.query.kernel", "attn.key.kernel"}
    assert decayed(by_role={"norm": True}) == base | {"norm.scale", "norm.bias"}


def test_the_params_of_linen():
    x = jnp.zeros((2, 8))
    module = nn.Sequential([nn.Dense(4), nn.LayerNorm(), nn.DenseGeneral((2, 3))])
    params = module.init(jax.random.key(0), x)["params"]
    mask = decay_mask(params, module=module, example=x)
    assert mask == {
        "layers_0": {"kernel": True, "bias": False},
        "layers_1": {"scale": False, "bias": False},
        "layers_2": {"kernel": True, "bias": False},
    }
    optax.adamw(1e-3, weight_decay=0.1, mask=mask).init(params)


def test_a_filtered_module_of_equinox():
    model = eqx.nn.MLP(8, 4, 16, 1, key=jax.random.key(0))
    params = eqx.filter(model, eqx.is_inexact_array)
    mask = decay_mask(params)
    assert [(layer.weight, layer.bias) for layer in mask.layers] == [(True, False)] * 2
    optax.adamw(1e-3, weight_decay=0.1, mask=mask).init(params)


def test_layouts_say_what_a_plain_tree_is():
    tree = {"fc": {"kernel": jnp.zeros((4, 2)), "bias": jnp.zeros((3, 2))}}
    # What is not known follows its being a matrix.
    assert decay_mask(tree) == {"fc": {"kernel": True, "bias": True}}
    layouts = [Layout("fc", kernel=("in", "out"), bias="bias")]
    assert decay_mask(tree, layouts=layouts) == {"fc": {"kernel": True, "bias": False}}
    with pytest.raises(InputError, match="decay apart"):
        decay_mask(tree, layouts=layouts, by_role={"qk": False})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decay": "some"}, "unknown decay"),
        ({"by_role": {"query": 0.1}}, "expected True or False"),
        ({"by_role": {"heads": True}}, "unknown role in by_role"),
    ],
)
def test_bad_options(options: Any, message: str):
    with pytest.raises(InputError, match=message):
        decay_mask(Model(), **options)

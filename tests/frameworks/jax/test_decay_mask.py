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


def test_a_module_of_nnx_gives_the_structure_that_optax_is_given():
    model = Model()
    mask = decay_mask(model)
    assert jax.tree.structure(mask) == jax.tree.structure(nnx.state(model, nnx.Param))
    found = {".".join(str(getattr(k, "key", k)) for k in path if not hasattr(k, "name")): leaf
             for path, leaf in jax.tree_util.tree_flatten_with_path(mask)[0]}  # fmt: skip
    assert {name for name, decays in found.items() if decays} == {
        "embed.embedding", "attn.query.kernel", "attn.key.kernel", "attn.value.kernel",
        "attn.out.kernel",
    }  # fmt: skip
    # The bias of heads has two axes, and is none of them.
    assert found["attn.query.bias"] is False and model.attn.query.bias.ndim == 2


def test_optax_decays_what_the_mask_says():
    model = Model()
    model.attn.query.bias.set_value(jnp.ones((2, 4)))
    transform = optax.add_decayed_weights(0.1, mask=decay_mask(model))
    state = nnx.state(model, nnx.Param)
    zero = jax.tree.map(jnp.zeros_like, state)
    updates, _ = transform.update(zero, transform.init(state), state)
    kernel = state["attn"]["query"]["kernel"]
    assert jnp.allclose(updates["attn"]["query"]["kernel"][...], 0.1 * kernel[...])
    assert not updates["attn"]["query"]["bias"][...].any()


def test_policies_and_roles_have_an_effect():
    def decayed(**options: Any) -> set[str]:
        leaves = jax.tree_util.tree_flatten_with_path(decay_mask(Model(), **options))[0]
        return {jax.tree_util.keystr(path[:-1], simple=True, separator=".")
                for path, leaf in leaves if leaf}  # fmt: skip

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

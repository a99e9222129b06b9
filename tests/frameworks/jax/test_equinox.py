"""Modules of Equinox: axes by class, shared nodes, static fields."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from initrate.errors import InputError
from initrate.frameworks.jax import Layout, apply, plan
from initrate.rule import Rule

KEY = jax.random.key(0)


def rows(model: Any, **options: Any) -> dict[str, Any]:
    return {row.name: row for row in plan(model, gamma=0.5, **options)}


MODULES = [
    (lambda: eqx.nn.Linear(8, 6, key=KEY), "weight", 8, "draw"),
    (lambda: eqx.nn.Linear("scalar", 6, key=KEY), "weight", 1, "draw"),
    (lambda: eqx.nn.Conv2d(8, 4, 3, groups=2, key=KEY), "weight", 36, "draw"),
    (lambda: eqx.nn.ConvTranspose1d(8, 4, 4, stride=2, key=KEY), "weight", 16, "draw"),
    (lambda: eqx.nn.Embedding(11, 8, key=KEY), "weight", 8, "draw"),
    (lambda: eqx.nn.LSTMCell(8, 6, key=KEY), "weight_hh", 6, "draw"),
    (lambda: eqx.nn.GRUCell(8, 6, key=KEY), "weight_ih", 8, "draw"),
    (lambda: eqx.nn.GRUCell(8, 6, key=KEY), "bias_n", None, "zero"),
    (lambda: eqx.nn.LayerNorm(8), "weight", None, "keep"),
    (lambda: eqx.nn.RMSNorm(8), "weight", None, "keep"),
    (lambda: eqx.nn.PReLU(), "negative_slope", None, "keep"),
    (lambda: eqx.nn.MLP(8, 5, 16, 2, key=KEY), "layers.2.weight", 16, "draw"),
]


@pytest.mark.parametrize(("make", "name", "d_in", "action"), MODULES)
def test_d_in_comes_from_the_class(make: Any, name: str, d_in: int | None, action: str):
    row = rows(make())[name]
    assert (row.d_in, row.action) == (d_in, action)
    if action == "draw":
        assert d_in is not None
        assert row.std == pytest.approx(d_in**-0.5)


def test_attention_has_its_roles():
    model = eqx.nn.MultiheadAttention(2, 48, qk_size=8, vo_size=8, key=KEY)
    found = rows(model)
    assert [(found[f"{n}_proj.weight"].role, found[f"{n}_proj.weight"].d_in) for n in
            ("query", "key", "value", "output")] == [
        ("query", 48), ("key", 48), ("value", 48), ("attention_output", 16)
    ]  # fmt: skip


class Tied(eqx.Module):
    shared: eqx.nn.Shared
    blocks: list
    name: str = eqx.field(static=True)
    activation: Any

    def __init__(self) -> None:
        embedding = eqx.nn.Embedding(11, 8, key=KEY)
        head = eqx.nn.Linear(8, 11, use_bias=False, key=KEY)
        self.shared = eqx.nn.Shared(
            (embedding, head), lambda pair: pair[1].weight, lambda pair: pair[0].weight
        )
        self.blocks = [eqx.nn.MultiheadAttention(2, 8, key=KEY) for _ in range(2)]
        self.name, self.activation = "tied", jax.nn.relu


def test_shared_nodes_are_one_row_drawn_once():
    model = Tied()
    found = rows(model)
    assert found["shared.0.weight"].role == "token_embedding"
    assert not [name for name in found if name.startswith("shared.1")]
    new, _ = apply(model, gamma=0.5)
    embedding, head = new.shared()
    assert head.weight is embedding.weight


def test_apply_leaves_the_tree_and_what_is_no_array():
    model = Tied()
    before = jax.tree.map(np.asarray, eqx.filter(model, eqx.is_array))
    new, found = apply(model, gamma=0.8, seed=1)
    assert found.ok
    assert jax.tree.all(jax.tree.map(np.array_equal, before, eqx.filter(model, eqx.is_array)))
    assert (new.name, new.activation) == ("tied", jax.nn.relu)
    assert jax.tree.structure(new) == jax.tree.structure(model)
    again, _ = apply(new, gamma=0.8, seed=1)
    assert all(a is b for a, b in zip(jax.tree.leaves(new), jax.tree.leaves(again), strict=True))


def test_layers_are_counted_for_the_residual_division():
    found = {row.name: row for row in plan(Tied(), rule=Rule(gamma=0.5, residual="sqrt_2L"))}
    assert found["blocks.1.output_proj.weight"].std == pytest.approx(8**-0.5 / 2)


def test_stacked_layers_are_copies():
    keys = jax.random.split(KEY, 3)
    model = eqx.filter_vmap(lambda key: eqx.nn.Linear(4, 6, key=key))(keys)
    found = rows(model)
    assert (found["weight"].d_in, found["bias"].action) == (4, "zero")


def test_norms_of_weights_are_refused_with_the_reason():
    found = rows(eqx.nn.WeightNorm(eqx.nn.Linear(4, 6, key=KEY)))
    assert "normalized by WeightNorm" in found["layer.weight"].reason
    assert found["g"].action == "keep"


def test_state_is_no_parameter():
    model, _ = eqx.nn.make_with_state(eqx.nn.BatchNorm)(8, axis_name="batch", mode="batch")
    assert sorted(rows(model)) == ["bias", "weight"]


class Own(eqx.Module):
    w: jax.Array


def test_an_own_module_is_refused_until_it_is_taught():
    model = Own(jax.numpy.zeros((4, 16)))
    with pytest.raises(InputError, match="'w' is a leaf of Own"):
        apply(model, gamma=0.5)
    assert rows(model, layouts=[Layout(Own, w=("out", "in"))])["w"].d_in == 16
    assert rows(model, unknown="keep")["w"].action == "keep"


def test_filtered_shapes_can_be_planned():
    model = eqx.filter_eval_shape(eqx.nn.MLP, 8, 5, 16, 2, key=KEY)
    assert rows(model)["layers.2.weight"].d_in == 16

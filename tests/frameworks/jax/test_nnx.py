"""Modules of Flax NNX: axes by class, shared variables, values in place."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from initrate.errors import InputError
from initrate.frameworks.jax import Layout, apply, audit, plan
from initrate.measure import std_interval
from initrate.rule import Rule


def rngs() -> nnx.Rngs:
    return nnx.Rngs(0)


def rows(model: Any, **options: Any) -> dict[str, Any]:
    return {row.name: row for row in plan(model, gamma=0.5, **options)}


MODULES = [
    (lambda: nnx.Linear(8, 6, rngs=rngs()), "kernel", 8, "draw"),
    (lambda: nnx.LinearGeneral((3, 8), (5, 2), axis=(-2, -1), rngs=rngs()), "kernel", 24, "draw"),
    # Flax takes 4 x 8 for the fan-in of this one; each of the 4 maps adds up 8 inputs.
    (lambda: nnx.LinearGeneral(8, 5, batch_axis={0: 4}, rngs=rngs()), "kernel", 8, "draw"),
    (lambda: nnx.Einsum("abc,cde->abde", (8, 2, 4), rngs=rngs()), "kernel", 8, "draw"),
    (lambda: nnx.Einsum("bhi,hio->bho", (2, 8, 4), rngs=rngs()), "kernel", 8, "draw"),
    (lambda: nnx.Conv(8, 6, (3, 3), rngs=rngs()), "kernel", 72, "draw"),
    (lambda: nnx.Conv(8, 6, 3, feature_group_count=2, rngs=rngs()), "kernel", 12, "draw"),
    (lambda: nnx.ConvTranspose(8, 6, (4, 4), strides=(2, 2), rngs=rngs()), "kernel", 32, "draw"),
    (
        lambda: nnx.ConvTranspose(8, 6, (4,), strides=2, transpose_kernel=True, rngs=rngs()),
        "kernel",
        16,
        "draw",
    ),
    (lambda: nnx.Embed(11, 8, rngs=rngs()), "embedding", 8, "draw"),
    (lambda: nnx.LayerNorm(8, rngs=rngs()), "scale", None, "keep"),
    (lambda: nnx.BatchNorm(8, rngs=rngs()), "bias", None, "keep"),
    (lambda: nnx.PReLU(), "negative_slope", None, "keep"),
    (lambda: nnx.LSTMCell(8, 6, rngs=rngs()), "hf.kernel", 6, "draw"),
    (lambda: nnx.GRUCell(8, 6, rngs=rngs()), "dense_i.kernel", 8, "draw"),
    (lambda: nnx.LoRA(8, 2, 6, rngs=rngs()), "lora_a", 8, "draw"),
    (lambda: nnx.LoRA(8, 2, 6, rngs=rngs()), "lora_b", 2, "zero"),
    (lambda: nnx.LoRALinear(8, 6, lora_rank=2, rngs=rngs()), "kernel", 8, "keep"),
]


@pytest.mark.parametrize(("make", "name", "d_in", "action"), MODULES)
def test_d_in_comes_from_the_class(make: Any, name: str, d_in: int | None, action: str):
    row = rows(make())[name]
    assert (row.d_in, row.action) == (d_in, action)
    if action == "draw":
        assert d_in is not None
        assert row.std == pytest.approx(d_in**-0.5)


def test_attention_has_its_roles_and_the_output_adds_up_all_heads():
    # Of d_in 48 and 16, so that the two cannot be taken for each other.
    model = nnx.MultiHeadAttention(2, 48, qkv_features=16, rngs=rngs())
    found = rows(model)
    assert {name: (found[f"{name}.kernel"].role, found[f"{name}.kernel"].d_in) for name in
            ("query", "key", "value", "out")} == {
        "query": ("query", 48),
        "key": ("key", 48),
        "value": ("value", 48),
        "out": ("attention_output", 16),
    }  # fmt: skip
    assert found["query.bias"].record.of == "query.kernel"


class Tied(nnx.Module):
    def __init__(self) -> None:
        self.head = nnx.Linear(8, 11, use_bias=False, rngs=rngs())
        self.embed = nnx.Embed(11, 8, rngs=rngs())
        self.again = self.embed
        self.itself = nnx.data(None)


def test_a_shared_variable_is_one_row_and_is_drawn_once():
    model = Tied()
    found = rows(model)
    assert sorted(found) == ["embed.embedding", "head.kernel"]
    assert found["embed.embedding"].record.aliases == ("again.embedding",)
    apply(model, gamma=0.5)
    assert model.again.embedding is model.embed.embedding


def test_apply_changes_the_module_in_place_and_a_second_time_nothing():
    model = Tied()
    before = np.asarray(model.head.kernel[...])
    returned, found = apply(model, gamma=0.8, seed=3)
    assert returned is model and found.ok
    drawn = model.head.kernel.get_value()
    assert not np.array_equal(before, drawn)
    apply(model, gamma=0.8, seed=3)
    assert model.head.kernel.get_value() is drawn
    apply(model, gamma=0.8, seed=4)
    assert not np.array_equal(model.head.kernel.get_value(), drawn)


def test_stacked_layers_are_copies():
    @nnx.vmap(in_axes=0, out_axes=0)
    def make(key: Any) -> Any:
        return nnx.Linear(64, 64, rngs=nnx.Rngs(key))

    model = make(jax.random.split(jax.random.key(0), 64))
    assert rows(model)["kernel"].d_in == 64
    apply(model, gamma=0.5)
    low, high = std_interval(0.125, 64**3)
    assert low < float(jnp.std(model.kernel[...])) < high
    assert float(jnp.abs(model.bias[...]).max()) == 0


class Block(nnx.Module):
    def __init__(self) -> None:
        self.attn = nnx.MultiHeadAttention(2, 8, rngs=rngs())
        self.mlp = nnx.Sequential(nnx.Linear(8, 8, rngs=rngs()), nnx.Linear(8, 8, rngs=rngs()))
        self.norm = nnx.LayerNorm(8, rngs=rngs())


class Stack(nnx.Module):
    def __init__(self, n_layers: int) -> None:
        self.blocks = nnx.List([Block() for _ in range(n_layers)])


def test_layers_are_counted_for_the_residual_division():
    rule = Rule(gamma=0.5, residual="sqrt_2L", draws={"mlp_out": {"kind": "keep"}})  # pyright: ignore[reportArgumentType]
    found = {row.name: row for row in plan(Stack(8), rule=rule, unknown="keep")}
    assert found["blocks.3.attn.out.kernel"].std == pytest.approx(8**-0.5 / 4)
    assert found["blocks.3.attn.query.kernel"].std == pytest.approx(8**-0.5)


def test_a_trained_module_is_refused_without_force_and_left_as_it_is():
    model: Any = Stack(1)
    model.blocks[0].norm.scale.set_value(jnp.arange(8.0))
    before = jax.tree.map(np.asarray, nnx.state(model, nnx.Param))
    with pytest.raises(InputError, match=r"blocks\.0\.norm\.scale.*trained.*force=True"):
        apply(model, gamma=0.5)
    after = jax.tree.map(np.asarray, nnx.state(model, nnx.Param))
    assert jax.tree.all(jax.tree.map(np.array_equal, before, after))
    apply(model, gamma=0.5, force=True)
    assert np.array_equal(model.blocks[0].norm.scale.get_value(), np.arange(8.0))


def test_weight_norm_is_refused_with_the_reason():
    model = nnx.WeightNorm(nnx.Linear(4, 4, rngs=rngs()), rngs=rngs())
    with pytest.raises(InputError, match="normalized by WeightNorm"):
        apply(model, gamma=0.5)


class Own(nnx.Module):
    initrate_layout: ClassVar = {"w": ("out", "in"), "role": "mlp_in"}

    def __init__(self) -> None:
        self.w = nnx.Param(jnp.zeros((4, 16)))


class Untaught(nnx.Module):
    def __init__(self) -> None:
        self.w = nnx.Param(jnp.zeros((4, 16)))


def test_an_own_module_is_refused_until_it_is_taught():
    assert rows(Own())["w"].d_in == 16
    assert rows(Own())["w"].role == "mlp_in"
    assert rows(Untaught())["w"].reason == "is a leaf of Untaught, whose layout is not known"
    for layout in (Layout(Untaught, w=("in", "out")), Layout("Untaught", w=("in", "out"))):
        assert rows(Untaught(), layouts=[layout])["w"].d_in == 4
    with pytest.raises(InputError, match="3 axes"):
        rows(Untaught(), layouts=[Layout(Untaught, w=("in", "out", "out"))])


def test_shapes_alone_can_be_planned_but_not_drawn():
    model = nnx.eval_shape(lambda: Stack(2))
    assert rows(model)["blocks.0.attn.out.kernel"].d_in == 8
    for act in (apply, audit):
        with pytest.raises(InputError, match="is a shape and has no values"):
            act(model, gamma=0.5)


def test_include_and_exclude():
    found = rows(Stack(2), include="blocks.1.*", exclude=["*.key.*"])
    drawn = {name for name, row in found.items() if row.action == "draw"}
    assert drawn and all(n.startswith("blocks.1.") and ".key." not in n for n in drawn)


def test_variables_that_are_no_parameters_are_left_out():
    model = nnx.BatchNorm(8, rngs=rngs())
    assert sorted(rows(model)) == ["bias", "scale"]
    with pytest.raises(InputError, match=r"holds no nnx\.Param"):
        rows(nnx.Dropout(0.1, rngs=rngs()))

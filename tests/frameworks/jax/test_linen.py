"""Params of Flax Linen: the module and an example say what owns them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from initrate.errors import InputError
from initrate.frameworks.jax import Layout, apply, plan
from initrate.measure import std_interval
from initrate.rule import Rule


def made(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
    """The shapes of a module's variables, as fast as they come."""
    return jax.eval_shape(lambda: module.init(jax.random.key(0), *args, **kwargs))


def rows(module: nn.Module, example: Any, tree: Any = None, **options: Any) -> dict[str, Any]:
    tree = made(module, example) if tree is None else tree
    found = plan(tree, gamma=0.5, module=module, example=example, **options)
    return {row.name: row for row in found}


X = jnp.zeros((2, 6, 8))
MODULES = [
    (nn.Dense(5), X, "kernel", 8),
    (nn.DenseGeneral((5, 2), axis=(-2, -1)), X, "kernel", 48),
    (nn.DenseGeneral(5, axis=-1, batch_dims=(0,)), X, "kernel", 8),
    (nn.Einsum((8, 2, 4), "abc,cde->abde"), X, "kernel", 8),
    (nn.Conv(5, (3,)), X, "kernel", 24),
    (nn.Conv(6, (3,), feature_group_count=2), X, "kernel", 12),
    (nn.ConvLocal(5, (3,)), X, "kernel", 24),
    (nn.ConvTranspose(5, (4,), strides=(2,)), X, "kernel", 16),
    (nn.ConvTranspose(5, (4,), transpose_kernel=True), X, "kernel", 32),
    (nn.Embed(11, 8), jnp.zeros((2, 3), int), "embedding", 8),
    (nn.RNN(nn.LSTMCell(7)), X, "cell.hf.kernel", 7),
    (nn.RNN(nn.OptimizedLSTMCell(7)), X, "cell.if.kernel", 8),
]


@pytest.mark.parametrize(("module", "example", "name", "d_in"), MODULES)
def test_d_in_comes_from_the_class(module: nn.Module, example: Any, name: str, d_in: int):
    found = rows(module, example)
    assert name in found, sorted(found)
    assert (found[name].d_in, found[name].std) == (d_in, pytest.approx(d_in**-0.5))


class Block(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = x + nn.MultiHeadDotProductAttention(2, qkv_features=4)(nn.LayerNorm()(x))
        return x + nn.Dense(8)(nn.Dense(32)(x))


class Step(nn.Module):
    @nn.compact
    def __call__(self, x: Any, _: Any) -> Any:
        return Block()(x), None


class Model(nn.Module):
    @nn.compact
    def __call__(self, tokens: Any, *, train: bool = False) -> Any:
        x = nn.Embed(11, 8)(tokens)
        for _ in range(3):
            x = Block()(x)
        stacked = nn.scan(Step, variable_axes={"params": 0}, split_rngs={"params": True}, length=5)
        x, _ = stacked()(x, None)
        x = nn.BatchNorm(use_running_average=not train)(x)
        kernel = nn.with_partitioning(nn.initializers.lecun_normal(), ("a", "b"))
        return nn.Dense(11, kernel_init=kernel)(x)


TOKENS = jnp.zeros((1, 4), int)


def test_the_module_says_what_its_params_are():
    found = rows(Model(), TOKENS)
    attention = "Block_0.MultiHeadDotProductAttention_0"
    assert found[f"{attention}.query.kernel"].role == "query"
    assert (found[f"{attention}.out.kernel"].role, found[f"{attention}.out.kernel"].d_in) == (
        "attention_output",
        4,
    )
    assert found["Embed_0.embedding"].role == "token_embedding"
    assert found["BatchNorm_0.scale"].action == "keep"
    # The variables of a partitioned kernel are in a box, which is no part of the name.
    assert found["Dense_0.kernel"].d_in == 8
    # Names that Linen makes up tell no role.
    assert found["Block_0.Dense_1.kernel"].role == "dense?"
    assert not [name for name in found if "mean" in name]


def test_scanned_layers_are_copies():
    found = rows(Model(), TOKENS)["ScanStep_0.Block_0.Dense_1.kernel"]
    assert (found.shape, found.d_in) == ((5, 8, 32), 8)


def test_layers_are_counted_for_the_residual_division():
    rule = Rule(gamma=0.5, residual="sqrt_2L")
    found = {
        row.name: row
        for row in plan(made(Model(), TOKENS), rule=rule, module=Model(), example=TOKENS)
    }
    name = "MultiHeadDotProductAttention_0.out.kernel"
    assert found[f"Block_1.{name}"].std == pytest.approx(4**-0.5 / 6**0.5)
    # How many layers of a stack of copies there are is not certain.
    assert found[f"ScanStep_0.Block_0.{name}"].action == "refuse"


def test_apply_draws_params_alone_and_variables_alike():
    class Small(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            return nn.BatchNorm(use_running_average=True)(nn.Dense(256)(x))

    x = jnp.zeros((1, 64))
    variables: Any = Small().init(jax.random.key(0), x)
    new, found = apply(variables, gamma=0.5, module=Small(), example=x)
    kernel = new["params"]["Dense_0"]["kernel"]
    low, high = std_interval(0.125, kernel.size)
    assert low < float(jnp.std(kernel)) < high and found.ok
    assert (
        new["batch_stats"]["BatchNorm_0"]["mean"] is variables["batch_stats"]["BatchNorm_0"]["mean"]
    )
    params, _ = apply(variables["params"], gamma=0.5, module=Small(), example=x)
    assert np.array_equal(params["Dense_0"]["kernel"], kernel)


def test_an_example_may_be_arguments_by_place_or_by_name():
    tree = made(Model(), TOKENS)
    for example in (TOKENS, (TOKENS,), {"tokens": TOKENS, "train": True},
                    jax.ShapeDtypeStruct((1, 4), "int32")):  # fmt: skip
        assert rows(Model(), example, tree)["Dense_0.kernel"].d_in == 8


def test_weight_norm_is_refused_with_the_reason():
    class Normed(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            return nn.WeightNorm(nn.Dense(8))(x)

    found = rows(Normed(), X)
    assert "normalized by WeightNorm" in found["Dense_0.kernel"].reason
    assert found["Dense_0.bias"].action == "zero"


class Position(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        return x + self.param("pos_embedding", nn.initializers.normal(), (6, 8))


def test_a_param_of_an_own_module_is_refused_until_it_is_taught():
    assert "is a leaf of Position" in rows(Position(), X)["pos_embedding"].reason
    found = rows(Position(), X, layouts=[Layout(Position, pos_embedding=("row", "width"))])
    assert (found["pos_embedding"].role, found["pos_embedding"].d_in) == ("position", 8)


def test_a_tree_of_another_module_is_refused():
    tree = {"params": {"Dense_0": {"kernel": np.zeros((8, 5), np.float32)}}}
    assert "made by no module" in rows(nn.Dense(5), X, tree)["Dense_0.kernel"].reason
    tree = {"params": {"kernel": np.zeros((7, 5), np.float32)}}
    assert "has the shape (7, 5)" in rows(nn.Dense(5), X, tree)["kernel"].reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"module": nn.Dense(5)}, "without example"),
        ({"example": X}, "without module"),
        ({"module": "Dense", "example": X}, "expected the flax.linen module"),
        ({"module": nn.Conv(5, (3,)), "example": "text"}, "cannot be called with the example"),
    ],
)
def test_bad_modules_and_examples(options: Any, message: str):
    with pytest.raises(InputError, match=message) as caught:
        plan({"kernel": np.zeros((8, 5))}, gamma=0.5, **options)
    assert "\n" not in str(caught.value)

"""Names, roles and initial values of the decoder's tensors."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from initrate.errors import InputError
from initrate.model import ModelConfig, initialize, n_parameters, tensor_specs
from initrate.rule import Rule, Zero, named_rule

CONFIG = ModelConfig(n_layers=3, n_heads=2, d_k=24, d_v=16)


@pytest.mark.parametrize(
    ("changes", "added", "removed"),
    [
        ({}, {"unembedding.bias", "final_norm.bias"}, {"blocks.0.mlp.in.bias"}),
        ({"norm_position": "post"}, set(), {"final_norm.weight"}),
        ({"norm": "rmsnorm"}, {"blocks.0.norm_1.weight"}, {"blocks.0.norm_1.bias"}),
        ({"activation": "swiglu"}, {"blocks.2.mlp.gate.weight"}, set()),
        ({"positions": "rotary"}, set(), {"position_embedding.weight"}),
        ({"tied": True}, {"unembedding.bias"}, {"unembedding.weight"}),
        ({"biases": "blocks"}, {"blocks.1.attention.key.bias"}, {"unembedding.bias"}),
        ({"biases": "none"}, set(), {"unembedding.bias", "blocks.0.mlp.out.bias"}),
        ({"biases": "all"}, {"unembedding.bias", "blocks.0.mlp.out.bias"}, set()),
    ],
)
def test_every_switch_changes_the_tensors(
    changes: dict[str, object], added: set[str], removed: set[str]
) -> None:
    names = {spec.name for spec in tensor_specs(replace(CONFIG, **changes), 50)}
    assert added <= names
    assert not removed & names


@pytest.mark.parametrize(
    ("name", "shape", "role", "d_in"),
    [
        ("token_embedding.weight", (50, 64), "token_embedding", 64),
        ("position_embedding.weight", (20, 64), "position", 64),
        ("blocks.0.attention.query.weight", (64, 48), "query", 64),
        ("blocks.2.attention.value.weight", (64, 32), "value", 64),
        ("blocks.1.attention.output.weight", (32, 64), "attention_output", 32),
        ("blocks.1.mlp.in.weight", (64, 128), "mlp_in", 64),
        ("blocks.1.mlp.out.weight", (128, 64), "mlp_out", 128),
        ("unembedding.weight", (64, 50), "unembedding", 64),
        ("unembedding.bias", (50,), "bias", 64),
    ],
)
def test_each_tensor_knows_its_inputs(
    name: str, shape: tuple[int, ...], role: str, d_in: int
) -> None:
    spec = {spec.name: spec for spec in tensor_specs(CONFIG, 50)}[name]
    assert (spec.shape, spec.role, spec.d_in) == (shape, role, d_in)


@pytest.mark.parametrize("gamma", [0.3, 0.5, 0.8])
def test_each_matrix_is_drawn_with_std_d_in_to_minus_gamma(gamma: float) -> None:
    weights = initialize(CONFIG, 50, [Rule(gamma=gamma)], [7])
    for spec in tensor_specs(CONFIG, 50):
        found = weights[spec.name][0]
        if spec.role == "norm":
            assert (found == (1.0 if spec.name.endswith("weight") else 0.0)).all()
        elif spec.role == "bias":
            assert (found == 0).all()
        else:
            # The std of n normals is known to about 1 / sqrt(2 n); five of these never fail here.
            tolerance = 5 / math.sqrt(2 * spec.size)
            assert found.std() == pytest.approx(spec.d_in**-gamma, rel=tolerance)


def test_models_with_one_seed_are_paired_over_gamma() -> None:
    weights = initialize(CONFIG, 50, [Rule(gamma=0.5), Rule(gamma=1.0)], [7, 7])
    large, small = weights["blocks.0.mlp.in.weight"]
    np.testing.assert_allclose(large * 64**-0.5, small, rtol=1e-6)


def test_a_model_does_not_depend_on_its_neighbours() -> None:
    both = initialize(CONFIG, 50, [Rule(gamma=0.5), Rule(gamma=0.8)], [1, 2])
    alone = initialize(CONFIG, 50, [Rule(gamma=0.8)], [2])
    for name, values in alone.items():
        np.testing.assert_array_equal(both[name][1], values[0])


def test_what_a_rule_keeps_is_that_of_a_new_torch_layer() -> None:
    kept = initialize(CONFIG, 50, [Rule(gamma=0.8, bias="keep")], [0])["unembedding.bias"]
    torch_default = initialize(CONFIG, 50, [named_rule("torch-default")], [0])["unembedding.bias"]
    np.testing.assert_array_equal(kept, torch_default)
    assert 0 < np.abs(kept).max() <= 64**-0.5


def test_a_role_that_is_zero_is_zero() -> None:
    weights = initialize(CONFIG, 50, [Rule(gamma=0.5, draws={"unembedding": Zero()})], [0])
    assert not weights["unembedding.weight"].any()
    assert weights["token_embedding.weight"].any()


def test_rules_and_seeds_must_be_as_many() -> None:
    with pytest.raises(InputError, match="2 rules and 1 seeds"):
        initialize(CONFIG, 50, [Rule(), Rule()], [0])


def test_parameters_are_counted_as_drawn() -> None:
    weights = initialize(CONFIG, 50, [Rule()], [0])
    assert n_parameters(CONFIG, 50) == sum(values[0].size for values in weights.values())

"""Drawn tensors: distribution by rule, pairing across gamma, extremes, bad input."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from initrate.errors import InputError
from initrate.rule import (
    Gamma,
    Keep,
    Rule,
    Std,
    TensorSpec,
    Uniform,
    Zero,
    draw_tensor,
    named_rule,
    tensor_d_in,
    tensor_std,
    unit_normal,
)


def spec_of(role: str = "mlp_in", shape: tuple[int, ...] = (64, 128), **changes) -> TensorSpec:
    spec = TensorSpec(f"{role}.weight", shape, role, d_in=64, d_model=64, vocabulary=128)
    return replace(spec, **changes)


def drawn(rule: Rule, spec: TensorSpec, **options) -> np.ndarray:
    values = draw_tensor(rule, spec, **{"seed": 0, "n_layers": 2} | options)
    assert values is not None
    assert values.dtype == np.float32 and values.shape == spec.shape
    return values


@pytest.mark.parametrize("gamma", [0.3, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("role", ["token_embedding", "query", "mlp_out", "unembedding"])
def test_the_std_measured_is_the_std_meant(gamma: float, role: str) -> None:
    rule = named_rule("paper-code-2501.08537", gamma=gamma)
    spec = spec_of(role, (200, 500), d_in=1200, d_model=400)
    meant = tensor_std(rule, spec, n_layers=2)
    values = drawn(rule, spec).astype(np.float64)
    assert meant is not None
    # Five standard errors: std / sqrt(2 n) of the std, std / sqrt(n) of the mean.
    assert abs(values.std() / meant - 1) < 5 / math.sqrt(2 * spec.size)
    assert abs(values.mean() / meant) < 5 / math.sqrt(spec.size)


def test_a_large_gamma_gives_no_outliers_and_no_truncation() -> None:
    # Truncated draws of torch gave values of thousands of std here.
    spec = spec_of(shape=(1000, 1000), d_in=65_536)
    values = drawn(Rule(gamma=2.0), spec).astype(np.float64) / 65_536.0**-2
    assert np.abs(values).max() < 8
    assert abs(values.std() - 1) < 5 / math.sqrt(2 * values.size)
    # Beyond 4 std, 63 of a million are expected.
    assert 63 - 5 * math.sqrt(63) < (np.abs(values) > 4).sum() < 63 + 5 * math.sqrt(63)


@pytest.mark.parametrize("seed", [0, 9])
def test_gamma_changes_the_factor_of_the_same_unit_normals_alone(seed: int) -> None:
    spec = spec_of()
    unit = unit_normal(seed, spec.name, spec.size).reshape(spec.shape).astype(np.float64)
    for gamma in (0.0, 0.3, 0.55, 0.8, 2.0):
        values = drawn(Rule(gamma=gamma), spec, seed=seed)
        assert np.array_equal(values, (unit * 64.0**-gamma).astype(np.float32))
    assert np.array_equal(
        drawn(Rule(draws={"mlp": Std(0.02)}), spec, seed=seed), (unit * 0.02).astype(np.float32)
    )


def test_every_rule_shares_the_uniform_values_too() -> None:
    one = drawn(Rule(draws={"mlp": Uniform(bound=0.25)}), spec_of())
    other = drawn(Rule(draws={"mlp": Uniform(gamma=0.5)}), spec_of())
    assert np.array_equal(one, other * 2)


@pytest.mark.parametrize("draw", [Uniform(gamma=0.5), Uniform(bound=0.125)])
def test_uniform_values_fill_their_bound(draw: Uniform) -> None:
    spec = spec_of(shape=(300, 300))
    values = drawn(Rule(draws={"mlp": draw}), spec)
    assert 0.125 * (1 - 50 / spec.size) < np.abs(values).max() <= 0.125
    error = math.sqrt((1 / 5 - 1 / 9) / spec.size)
    assert abs(values.astype(np.float64).var() / 0.125**2 - 1 / 3) < 5 * error


def test_torchs_bias_follows_the_inputs_of_its_weight() -> None:
    spec = spec_of("bias", (50_000,), d_in=400, d_model=64, weight_role="mlp_in")
    values = drawn(Rule(gamma=2.0, bias="torch"), spec)
    assert 0.0499 < np.abs(values).max() <= 0.05
    assert not drawn(Rule(bias="zero"), spec).any()
    assert draw_tensor(Rule(bias="keep"), spec, seed=0) is None


def test_zero_and_keep() -> None:
    assert not drawn(Rule(draws={"mlp": Zero()}), spec_of()).any()
    assert draw_tensor(Rule(draws={"mlp": Keep()}), spec_of(), seed=0) is None
    assert draw_tensor(Rule(), spec_of("norm", (64,)), seed=0) is None
    assert draw_tensor(Rule(), spec_of("structured"), seed=0) is None


@pytest.mark.parametrize("draw", [Gamma(0.5), Std(0.125), Uniform(gamma=0.5)])
def test_residual_division_divides_the_values(draw: Gamma | Std | Uniform) -> None:
    spec = spec_of("mlp_out")
    plain = drawn(Rule(draws={"mlp": draw}), spec)
    divided = drawn(Rule(draws={"mlp": draw}, residual="sqrt_2L"), spec, n_layers=8)
    assert np.array_equal(plain, divided * 4)
    with pytest.raises(InputError, match="needs the number of layers"):
        draw_tensor(Rule(residual="sqrt_2L"), spec, seed=0)


def test_tensors_differ_by_name_and_seed_but_not_by_shape() -> None:
    spec = spec_of()
    other = TensorSpec("other", spec.shape, spec.role, 64, 64)
    flat = TensorSpec(spec.name, (spec.size,), spec.role, 64, 64)
    assert not np.array_equal(drawn(Rule(), spec), drawn(Rule(), other))
    assert not np.array_equal(drawn(Rule(), spec), drawn(Rule(), spec, seed=1))
    assert np.array_equal(drawn(Rule(), spec).ravel(), drawn(Rule(), flat))


@pytest.mark.parametrize(
    ("role", "shape", "rule", "d_in"),
    [
        ("token_embedding", (201, 400), Rule(), 400),
        ("token_embedding", (201, 400), Rule(embedding_d_in="vocabulary"), 201),
        ("position", (20, 400), Rule(), 400),
        ("position", (20, 400), Rule(embedding_d_in="vocabulary"), 20),
        ("mlp_out", (1200, 400), Rule(), 1200),
        ("mlp_out", (1200, 400), Rule(embedding_d_in="vocabulary"), 1200),
        ("mlp_out", (1200, 400), Rule(d_in_by_role={"mlp_out": "d_model"}), 400),
        ("mlp_out", (1200, 400), Rule(d_in_by_role={"mlp": "d_model"}), 400),
        ("bias", (400,), Rule(d_in_by_role={"mlp": "d_model"}), 1200),
    ],
)
def test_d_in_of_a_tensor(role: str, shape: tuple[int, ...], rule: Rule, d_in: int) -> None:
    spec = TensorSpec(role, shape, role, d_in=1200, d_model=400, vocabulary=201)
    assert tensor_d_in(rule, spec) == d_in


def test_without_a_vocabulary_the_rows_of_the_table_count() -> None:
    spec = TensorSpec("e", (50, 8), "token_embedding", d_in=8, d_model=8)
    assert tensor_d_in(Rule(embedding_d_in="vocabulary"), spec) == 50


@pytest.mark.parametrize("gamma", [25.0, -22.0])
def test_a_std_that_float32_cannot_hold_is_refused(gamma: float) -> None:
    with pytest.raises(InputError, match="which float32 cannot hold: give a gamma nearer"):
        draw_tensor(Rule(gamma=gamma), spec_of(), seed=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"role": "mlp"}, "unknown role 'mlp'"),
        ({"weight_role": "mlpin"}, "unknown role 'mlpin'"),
        ({"d_in": 0}, "d_in of 'w' is 0: expected a whole number"),
        ({"d_model": 6.5}, "d_model of 'w' is 6.5: expected a whole number"),
        ({"vocabulary": -3}, "vocabulary of 'w' is -3"),
        ({"shape": (4, 0)}, "a side of 'w' is 0"),
        ({"name": ""}, "tensor name is ''"),
    ],
)
def test_bad_specs(changes: dict, message: str) -> None:
    fields = {"name": "w", "shape": (4, 4), "role": "query", "d_in": 4, "d_model": 4} | changes
    with pytest.raises(InputError, match=message):
        TensorSpec(**fields)  # pyright: ignore[reportArgumentType]


def test_a_spec_can_be_hashed_and_knows_its_size() -> None:
    spec = TensorSpec("w", [3, 4], "query", 3, 3)  # pyright: ignore[reportArgumentType]
    assert spec.shape == (3, 4) and spec.size == 12 and hash(spec) == hash(spec)

"""The named rules: every std by role, spelled out again from the sources."""

from __future__ import annotations

import math

import pytest

from initrate.errors import InputError
from initrate.rule import (
    ROLES,
    RULES,
    WEIGHT_ROLES,
    Gamma,
    Rule,
    Std,
    TensorSpec,
    named_rule,
    rule_title,
    tensor_std,
)

# The main model of arXiv 2405.05409 with three layers, and one map of every other role.
L, D_MODEL, D_V, D_FF, VOCABULARY, POSITIONS = 3, 400, 200, 1200, 201, 20
D_IN = {"attention_output": D_V, "mlp_out": D_FF, "convolution": 27}
SHAPES = {"token_embedding": (VOCABULARY, D_MODEL), "position": (POSITIONS, D_MODEL)}
SPECS = {
    role: TensorSpec(
        role,
        SHAPES.get(role, (D_IN.get(role, D_MODEL), 7)),
        role,
        d_in=D_IN.get(role, D_MODEL),
        d_model=D_MODEL,
        vocabulary=VOCABULARY,
    )
    for role in ROLES
}
TORCH_BIAS = 1 / math.sqrt(3 * D_MODEL)
LINEAR = [role for role in WEIGHT_ROLES if role not in ("token_embedding", "position")]


def by_role(everywhere: float, **others: float | None) -> dict[str, float | None]:
    return {role: everywhere for role in ROLES} | {"norm": None, "structured": None} | others


def expected(name: str, gamma: float) -> dict[str, float | None]:
    true_inputs = {
        "attention_output": 200**-gamma,
        "mlp_out": 1200**-gamma,
        "convolution": 27**-gamma,
    }
    match name:
        case "formula":
            return by_role(400**-gamma, **true_inputs, bias=0.0)
        case "paper-2405.05409":
            return by_role(400**-gamma, **true_inputs, bias=TORCH_BIAS)
        case "paper-code-2501.08537":
            divided = 400**-gamma / math.sqrt(6)
            return by_role(
                400**-gamma,
                attention_output=divided,
                mlp_out=divided,
                convolution=27**-gamma,
                bias=TORCH_BIAS,
            )
        case "gpt2":
            divided = 0.02 / math.sqrt(6)
            return by_role(0.02, attention_output=divided, mlp_out=divided, bias=0.0)
        case "torch-default":
            linear = {role: 1 / math.sqrt(3 * SPECS[role].d_in) for role in LINEAR}
            return by_role(0.0, **linear, token_embedding=1.0, position=1.0, bias=TORCH_BIAS)
    raise AssertionError(f"the rule {name!r} has no expected numbers")


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("gamma", [0.3, 0.5, 0.8])
def test_every_std_by_role(name: str, gamma: float) -> None:
    has_gamma = RULES[name].rule.gamma is not None
    rule = named_rule(name, gamma=gamma if has_gamma else None)
    for role, std in expected(name, gamma).items():
        found = tensor_std(rule, SPECS[role], n_layers=L)
        assert found is None if std is None else found == pytest.approx(std, rel=1e-12), role


def test_gpt2_divides_as_its_twelve_layers_do() -> None:
    # Hugging Face: 0.02 / sqrt(2 * 12) = 0.00408.
    assert named_rule("gpt2").std("mlp_out", d_in=3072, n_layers=12) == pytest.approx(
        0.00408, abs=5e-6
    )


def test_biases_of_the_papers_code_swamp_the_weights_at_large_gamma() -> None:
    # arXiv 2501.08537 at d 640, gamma 0.8: weight std 0.0057, bias std 0.0228.
    rule = named_rule("paper-code-2501.08537", gamma=0.8)
    assert rule.std("query", d_in=640) == pytest.approx(0.0057, abs=5e-5)
    assert rule.std("bias", d_in=640) == pytest.approx(0.0228, abs=5e-5)


@pytest.mark.parametrize("name", RULES)
def test_names_descriptions_and_round_trips(name: str) -> None:
    entry = RULES[name]
    assert entry.rule.name == name == rule_title(entry.rule)
    assert entry.description and entry.source
    assert "\n" not in entry.description + entry.source
    assert Rule.from_toml(entry.rule.to_toml()) == entry.rule == named_rule(name)
    assert Rule.from_dict({"name": name}) == entry.rule


@pytest.mark.parametrize("name", ["gpt2", "torch-default"])
def test_a_rule_without_gamma_refuses_one(name: str) -> None:
    assert named_rule(name).gamma is None
    with pytest.raises(InputError, match=f"rule '{name}' is given gamma 0.8: it has no gamma"):
        named_rule(name, gamma=0.8)


def test_options_of_a_named_rule_can_be_changed_and_show_in_its_title() -> None:
    rule = named_rule("formula", gamma=0.8, gamma_by_role={"qk": 0.5}, residual="sqrt_2L")
    assert (rule.gamma, rule.draw("key"), rule.residual) == (0.8, Gamma(0.5), "sqrt_2L")
    assert rule_title(rule) == "formula (changed: residual)"
    assert rule_title(named_rule("formula", gamma=0.8, gamma_by_role={"qk": 0.5})) == "formula"
    assert rule_title(Rule(name="mine", bias="keep")) == "mine"
    changed = named_rule("gpt2", gamma=0.7, draws={"embedding": Std(0.02)})
    assert changed.draw("query") == Gamma(0.7)
    assert rule_title(changed) == "gpt2 (changed: draws)"


def test_bad_names() -> None:
    with pytest.raises(InputError, match="unknown rule 'formla': did you mean 'formula'"):
        named_rule("formla")
    with pytest.raises(InputError, match="unknown rule option 'gama_by_role': did you mean"):
        named_rule("formula", gama_by_role={})
    with pytest.raises(InputError, match="rule gamma is nan"):
        named_rule("formula", gamma=math.nan)

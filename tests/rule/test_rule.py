"""A rule: which draw a role gets, what each option changes, round trips, bad input."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from initrate.errors import InputError
from initrate.rule import (
    EMBEDDING_ROLES,
    KEPT_ROLES,
    RESIDUAL_ROLES,
    ROLE_GROUPS,
    ROLES,
    WEIGHT_ROLES,
    Gamma,
    Keep,
    Rule,
    Std,
    TensorSpec,
    Uniform,
    Zero,
    group_of,
    tensor_std,
)

# A tensor of every role, with sizes that no two meanings of d_in share.
SPECS = {
    role: TensorSpec(role, (11, 13), role, d_in=100, d_model=64, vocabulary=201) for role in ROLES
}


def stds(rule: Rule) -> dict[str, float | None]:
    return {role: tensor_std(rule, spec, n_layers=8) for role, spec in SPECS.items()}


def test_the_plain_formula_by_role() -> None:
    expected = {role: (64 if role in EMBEDDING_ROLES else 100) ** -0.8 for role in WEIGHT_ROLES} | {
        "norm": None,
        "structured": None,
        "bias": 0.0,
    }
    assert stds(Rule(gamma=0.8)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("option", "roles"),
    [
        ({"gamma": 0.8}, WEIGHT_ROLES),
        ({"gamma_by_role": {"query": 0.8}}, ("query",)),
        ({"bias": "torch"}, ("bias",)),
        ({"bias": "keep"}, ("bias",)),
        ({"residual": "sqrt_2L"}, RESIDUAL_ROLES),
        ({"embedding_d_in": "vocabulary"}, EMBEDDING_ROLES),
        ({"draws": {"router": Zero()}}, ("router",)),
        ({"draws": {"bias": Std(0.1)}}, ("bias",)),
        ({"d_in_by_role": {"mlp_out": "d_model"}}, ("mlp_out",)),
        *(({"gamma_by_role": {group: 0.8}}, roles) for group, roles in ROLE_GROUPS.items()),
        *(({"draws": {group: Keep()}}, roles) for group, roles in ROLE_GROUPS.items()),
        ({"d_in_by_role": {"vo": "d_model"}}, ("value", "attention_output")),
    ],
)
def test_each_option_changes_its_roles_and_no_other(option: dict, roles: tuple[str, ...]) -> None:
    before, after = stds(Rule()), stds(Rule(**option))
    assert {role for role in ROLES if before[role] != after[role]} == set(roles)


def test_every_weight_role_is_in_one_group_or_by_itself() -> None:
    grouped = [role for roles in ROLE_GROUPS.values() for role in roles]
    assert len(grouped) == len(set(grouped))
    assert set(ROLES) == {*grouped, "router", "convolution", "linear", "norm", "bias", "structured"}


def test_a_role_wins_over_its_group_across_options() -> None:
    rule = Rule(gamma=0.5, gamma_by_role={"query": 0.9, "vo": 0.7}, draws={"qk": Std(0.02)})
    assert rule.draw("query") == Gamma(0.9)
    assert rule.draw("key") == Std(0.02)
    assert rule.draw("value") == Gamma(0.7)
    assert rule.draw("mlp_in") == Gamma(0.5)


@pytest.mark.parametrize(
    ("bias", "draw", "std"),
    [
        ("zero", Zero(), 0.0),
        ("torch", Uniform(gamma=0.5), 1 / math.sqrt(300)),
        ("keep", Keep(), None),
    ],
)
def test_biases(bias: str, draw: object, std: float | None) -> None:
    rule = Rule(gamma=0.9, bias=bias)  # pyright: ignore[reportArgumentType]
    assert rule.draw("bias") == draw
    assert rule.std("bias", d_in=100) == (None if std is None else pytest.approx(std))


@pytest.mark.parametrize("role", KEPT_ROLES)
def test_norms_and_structures_are_always_kept(role: str) -> None:
    assert Rule(gamma=0.9).draw(role) == Keep()
    assert Rule(gamma=0.9).std(role, d_in=64) is None


@pytest.mark.parametrize("draw", [Gamma(0.5), Std(0.1), Uniform(bound=0.1 * math.sqrt(3))])
@pytest.mark.parametrize("role", RESIDUAL_ROLES)
def test_residual_division_acts_on_every_kind_of_draw(draw: object, role: str) -> None:
    rule = Rule(residual="sqrt_2L", draws={role: draw})  # pyright: ignore[reportArgumentType]
    assert rule.std(role, d_in=100, n_layers=8) == pytest.approx(0.1 / 4)
    assert rule.std("query", d_in=100) == 0.1


def test_residual_division_needs_the_layers() -> None:
    with pytest.raises(InputError, match="needs the number of layers"):
        Rule(residual="sqrt_2L").std("mlp_out", d_in=64)
    with pytest.raises(InputError, match="n_layers is 0: expected a whole number"):
        Rule(residual="sqrt_2L").std("mlp_out", d_in=64, n_layers=0)


def test_gamma_is_a_half_unless_given_and_none_where_it_has_no_part() -> None:
    everything = dict.fromkeys(WEIGHT_ROLES, Std(0.02))
    assert Rule().gamma == 0.5
    assert Rule(draws=everything).gamma is None
    with pytest.raises(InputError, match="no effect: every role has a draw of its own"):
        Rule(gamma=0.8, draws=everything)
    with pytest.raises(InputError, match="no effect"):
        replace(Rule(draws=everything), gamma=0.8)


gammas = st.floats(-2, 4)
draws = (
    st.builds(Gamma, gammas)
    | st.builds(Std, st.floats(1e-6, 10))
    | st.builds(lambda x: Uniform(bound=x), st.floats(1e-6, 10))
    | st.builds(lambda x: Uniform(gamma=x), gammas)
    | st.just(Zero())
    | st.just(Keep())
)
keys = st.sampled_from([*ROLE_GROUPS, *WEIGHT_ROLES, "bias"])
d_in_keys = st.sampled_from(["qk", "vo", "mlp", "mlp_out", "unembedding", "router"])


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    by_role = draw(st.dictionaries(keys, gammas, max_size=4))
    # A rate of a group whose roles are all drawn by themselves would have no effect.
    free = keys.filter(lambda key: key not in by_role and group_of(key) not in by_role)
    return Rule(
        gamma=draw(gammas),
        gamma_by_role=by_role,
        bias=draw(st.sampled_from(["zero", "torch", "keep"])),
        residual=draw(st.sampled_from(["none", "sqrt_2L"])),
        embedding_d_in=draw(st.sampled_from(["d_model", "vocabulary"])),
        draws=draw(st.dictionaries(free, draws, max_size=4)),
        d_in_by_role=dict.fromkeys(draw(st.sets(d_in_keys, max_size=3)), "d_model"),
        name=draw(st.sampled_from(["formula", "gpt2", "mine", 'quoted "γ"'])),
    )


@settings(max_examples=60, deadline=None)
@given(rules())
def test_round_trips(rule: Rule) -> None:
    assert Rule.from_dict(rule.to_dict()) == rule
    assert Rule.from_toml(rule.to_toml()) == rule
    assert pickle.loads(pickle.dumps(rule)) == rule == copy.deepcopy(rule)
    assert hash(Rule.from_toml(rule.to_toml())) == hash(rule)
    assert stds(Rule.from_toml(rule.to_toml())) == stds(rule)


def test_a_rule_does_not_change_with_what_it_was_made_of() -> None:
    by_role = {"qk": 0.5}
    rule = Rule(gamma_by_role=by_role)
    by_role["qk"] = 0.9
    assert rule.gamma_by_role == {"qk": 0.5}
    with pytest.raises(TypeError):
        rule.gamma_by_role["qk"] = 0.9  # pyright: ignore[reportIndexIssue]
    with pytest.raises(AttributeError):
        rule.gamma = 0.9  # pyright: ignore[reportAttributeAccessIssue]


def test_the_order_of_options_does_not_matter() -> None:
    one = Rule(gamma_by_role={"qk": 0.5, "vo": 0.6})
    other = Rule(gamma_by_role={"vo": 0.6, "qk": 0.5})
    assert one == other and hash(one) == hash(other) and one.to_toml() == other.to_toml()


def test_plain_tables_are_draws() -> None:
    rule = Rule.from_toml('[draws.qk]\nkind = "std"\nstd = 0.02\n')
    assert rule == Rule(draws={"qk": Std(0.02)})


def test_fields_left_out_are_those_of_the_named_rule() -> None:
    assert Rule.from_dict({"name": "gpt2"}).draw("query") == Std(0.02)
    assert Rule.from_dict({"name": "paper-2405.05409", "gamma": 0.7}).bias == "torch"
    assert Rule.from_dict({"name": "mine"}) == Rule(name="mine")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            {"gamma_by_role": {"qkv": 0.5}},
            "unknown role in gamma_by_role 'qkv': did you mean 'qk'?",
        ),
        ({"gamma_by_role": {3: 0.5}}, "unknown role in gamma_by_role '3'"),
        ({"gamma_by_role": {"qk": "0.5"}}, "rule gamma of 'qk' is '0.5': expected a finite number"),
        ({"gamma_by_role": {"qk": math.nan}}, "rule gamma of 'qk' is nan: expected"),
        ({"gamma_by_role": {"norm": 0.5}}, "'norm': its tensors are always kept"),
        ({"gamma_by_role": 0.5}, "rule gamma_by_role is 0.5: expected a mapping from roles"),
        ({"draws": {"structured": Zero()}}, "'structured': its tensors are always kept"),
        ({"draws": {"mlp_int": Zero()}}, "unknown role in draws 'mlp_int': did you mean 'mlp_in'?"),
        ({"draws": {"qk": 0.02}}, "draw is 0.02: expected Gamma, Std"),
        ({"draws": [Zero()]}, "expected a mapping from roles"),
        ({"draws": {"qk": Zero()}, "gamma_by_role": {"qk": 0.5}}, "both a gamma and a draw"),
        ({"bias": "zeros"}, "unknown rule bias 'zeros': did you mean 'zero'? known: zero, torch"),
        ({"bias": None}, "unknown rule bias 'None'"),
        ({"residual": "sqrt2L"}, "unknown rule residual 'sqrt2L': did you mean 'sqrt_2L'?"),
        ({"embedding_d_in": "vocab"}, "unknown rule embedding_d_in 'vocab'"),
        ({"d_in_by_role": {"mlp_out": "d_ff"}}, "unknown d_in of 'mlp_out' in d_in_by_role 'd_ff'"),
        ({"d_in_by_role": {"embedding": "d_model"}}, "the d_in of embeddings is embedding_d_in"),
        ({"d_in_by_role": {"position": "d_model"}}, "the d_in of embeddings is embedding_d_in"),
        ({"name": ""}, "rule name is '': expected a name"),
        ({"name": "two\nlines"}, "expected a name of one line"),
        ({"name": 3}, "rule name is 3: expected a name"),
    ],
)
def test_bad_options(option: dict, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Rule(**option)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_roles_and_fields_and_text() -> None:
    with pytest.raises(InputError, match="unknown role 'querry': did you mean 'query'"):
        Rule().draw("querry")
    with pytest.raises(InputError, match="unknown rule option 'gama': did you mean 'gamma'"):
        Rule.from_dict({"gama": 0.5})
    with pytest.raises(InputError, match=r"not TOML: .*line 2"):
        Rule.from_toml("bias = 'zero'\ngamma = x")
    with pytest.raises(InputError, match="d_in is 0"):
        Rule().std("query", d_in=0)

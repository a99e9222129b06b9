"""Plans: what a rule does with every record, and what it refuses."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from initrate.errors import InputError
from initrate.rule import (
    DENSE_ROLES,
    Keep,
    Plan,
    PlanRow,
    Rule,
    Std,
    WeightRecord,
    Zero,
    named_rule,
    plan_records,
)


def row(record: WeightRecord, rule: Rule) -> PlanRow:
    return plan_records([record], rule).rows[0]


def dense(*roles: str, **more) -> WeightRecord:
    options: dict[str, Any] = {"d_in": 64, "d_out": 256, "d_model": 64}
    return WeightRecord("w", (256, 64), roles, **options | more)


CASES = {
    "a map": (dense("mlp_in"), Rule(gamma=0.8), "draw", 64**-0.8),
    "several roles alike": (dense(*DENSE_ROLES), Rule(gamma=0.8), "draw", 64**-0.8),
    "several roles apart": (dense("query", "value"), Rule(gamma_by_role={"qk": 1}), "refuse", None),
    "a part": (dense("query"), Rule(gamma=0.5, gamma_by_role={"qk": 1}), "draw", 1 / 64),
    "no role": (dense(), Rule(gamma=0.8), "refuse", None),
    "no d_in": (dense("mlp_in", d_in=None), Rule(gamma=0.8), "refuse", None),
    "no d_in, kept": (dense("mlp_in", d_in=None), Rule(draws={"mlp_in": Keep()}), "keep", None),
    "no d_in, zero": (dense("mlp_in", d_in=None), Rule(draws={"mlp_in": Zero()}), "zero", 0.0),
    "refused by its adapter": (dense("mlp_in", refuse="is X"), Rule(gamma=0.8), "refuse", None),
    "kept by its adapter": (dense("mlp_in", keep="frozen"), Rule(gamma=0.8), "keep", None),
    "zero by its adapter": (dense("mlp_in", zero="LoRA"), Rule(gamma=0.8), "zero", 0.0),
    "kept wins over the role": (dense(keep="frozen"), Rule(gamma=0.8), "keep", None),
    "a norm": (dense("norm"), Rule(gamma=0.8), "keep", None),
    "structured": (dense("structured"), Rule(gamma=0.8), "keep", None),
    "a bias": (dense("bias"), Rule(gamma=0.8), "zero", 0.0),
    "a bias kept": (dense("bias"), Rule(gamma=0.8, bias="keep"), "keep", None),
    "a bias of torch": (dense("bias"), Rule(bias="torch"), "draw", 0.125 / math.sqrt(3)),
    "nothing in it": (WeightRecord("w", (0, 4), ("mlp_in",), d_in=4), Rule(), "keep", None),
    "by width": (dense("token_embedding", rows=256), Rule(gamma=0.5), "draw", 0.125),
    "by rows": (
        dense("token_embedding", rows=256),
        Rule(gamma=0.5, embedding_d_in="vocabulary"),
        "draw",
        1 / 16,
    ),
    "residual": (dense("mlp_out", n_layers=8), Rule(residual="sqrt_2L"), "draw", 0.125 / 4),
    "residual of no depth": (dense("mlp_out"), Rule(residual="sqrt_2L"), "refuse", None),
    "residual, another role": (dense("mlp_in"), Rule(residual="sqrt_2L"), "draw", 0.125),
    "d_model": (
        dense("mlp_out", d_in=256, d_model=64),
        Rule(d_in_by_role={"mlp_out": "d_model"}),
        "draw",
        0.125,
    ),
    "d_model that is not known": (
        dense("mlp_out", d_model=None),
        Rule(d_in_by_role={"mlp_out": "d_model"}),
        "refuse",
        None,
    ),
    "a fixed std": (dense("query", "key"), Rule(draws={"qk": Std(0.02)}), "draw", 0.02),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_rule_does(case: str):
    record, rule, action, std = CASES[case]
    found = row(record, rule)
    assert found.action == action, found.reason
    assert found.std == (None if std is None else pytest.approx(std))
    assert bool(found.reason) == (action != "draw")


def test_uniform_draws_have_their_bound_as_factor():
    found = row(dense("mlp_in"), named_rule("torch-default"))
    assert found.uniform
    assert (found.factor, found.std) == (pytest.approx(0.125), pytest.approx(0.125 / math.sqrt(3)))


def test_unknown_tensors_may_be_kept():
    plan = plan_records([dense(), dense("mlp_in")], Rule(), unknown_tensors="keep")
    assert [row.action for row in plan] == ["keep", "draw"]
    assert plan.rows[0].reason == "unknown: has a role that is not known"
    assert plan.refused == ()
    plan.raise_for_refused()
    with pytest.raises(InputError, match="unknown way with unknown tensors 'kept'"):
        plan_records([], Rule(), unknown_tensors="kept")  # pyright: ignore[reportArgumentType]


def test_the_error_for_what_is_refused_names_it_and_says_what_to_do():
    plan = plan_records([dense(), dense(), dense("mlp_in")], Rule())
    with pytest.raises(InputError) as raised:
        plan.raise_for_refused()
    line = str(raised.value)
    assert line.startswith("2 of 3 tensors are refused: 'w' has a role that is not known (and 1 ")
    assert all(word in line for word in ("layouts=", "unknown='keep'"))


@pytest.mark.parametrize("gamma", [12.0, -12.0])
def test_a_std_that_float32_cannot_hold(gamma: float):
    wide = WeightRecord("w", (4, 10_000), ("mlp_in",), d_in=10_000)
    with pytest.raises(InputError, match="which float32 cannot hold: give a gamma nearer"):
        plan_records([wide], Rule(gamma=gamma))


def plan() -> Plan:
    layers = [WeightRecord(f"h.{i}.fc", (256, 64), ("mlp_in",), d_in=64) for i in range(12)]
    other = WeightRecord("h.12.fc", (512, 64), ("mlp_in",), d_in=64)
    return plan_records([*layers, other, WeightRecord("<x>", (3,))], Rule(gamma=0.8))


def test_counts():
    assert plan().count("draw") == (13, 12 * 16384 + 32768)
    assert plan().count("refuse") == (1, 3)
    assert plan().count("keep") == (0, 0)
    assert len(plan()) == 14
    assert plan().summary() == (
        "rule formula, γ 0.8; 13 drawn (229,376 values), 1 refused (3 values)"
    )


def test_the_table_gathers_layers_of_one_shape():
    head, rows = plan().table(whole=False)
    assert head[0] == "name"
    assert [row[0] for row in rows] == ["h.*.fc ×12", "h.12.fc", "<x>"]
    assert len(plan().table()[1]) == 14


def test_the_table_in_a_notebook_shows_refused_rows_first_and_escapes():
    html = plan()._repr_html_()
    assert "<x>" not in html
    assert html.index("&lt;x&gt;") < html.index("h.0.fc")
    assert "<td><strong>refuse</strong></td>" in html
    assert "<details>" not in html
    many = [WeightRecord(f"h.{i}.fc", (4, 4), ("mlp_in",), d_in=4) for i in range(3000)]
    folded = plan_records(many, Rule())._repr_html_()
    assert "<summary>3000 rows</summary>" in folded
    assert "1000 more rows are not shown" in folded


def test_plain_values():
    found = plan().to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert Rule.from_dict(found["rule"]) == Rule(gamma=0.8)  # pyright: ignore[reportArgumentType]

"""Layouts of users: by class, by path, in parts; and what fits nothing is a slip."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import pytest
import torch
from torch import nn

import initrate
from initrate import InputError, Layout, Rule
from initrate.frameworks.torch import apply, audit, plan
from initrate.rule import PlanRow

FIVE = ("query", "key", "value", "router", "linear")
APART = Rule(gamma=0.8, gamma_by_role={"qk": 0.5})


class Attention(nn.Module):
    """An attention in the words that most models use."""

    def __init__(self, d: int = 32) -> None:
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(d, d), nn.Linear(d, d)
        self.v_proj, self.o_proj = nn.Linear(d, d), nn.Linear(d, d)


class Block(nn.Module):
    def __init__(self, d: int = 32) -> None:
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.mix = nn.Parameter(torch.zeros(d, d))


def rows(model: nn.Module, rule: Rule = APART, **options: Any) -> dict[str, PlanRow]:
    return {row.name: row for row in plan(model, rule=rule, **options)}


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: nn.Sequential(m, m)], ids=["itself", "in"])
def test_an_attention_has_its_roles_also_where_it_is_the_whole_model(wrap: Any) -> None:
    found = [row.role for name, row in rows(wrap(Attention())).items() if name.endswith("weight")]
    assert found[:4] == ["query", "key", "value", "attention_output"]


def test_words_of_layers_tell_nothing_in_a_model_of_no_name() -> None:
    model = nn.Module()
    model.q_proj, model.proj = nn.Linear(8, 8), nn.Linear(8, 8)
    assert all(r.action == "refuse" for n, r in rows(model).items() if n.endswith("weight"))
    assert rows(model, Rule(gamma=0.5))["proj.weight"].action == "draw"


def test_parts_of_a_fused_map_follow_their_own_rate() -> None:
    model = nn.Sequential(Block(), Block())
    layouts = [
        Layout("*.qkv", weight=("out", "in"), parts=("query", "key", "value")),
        Layout(Block, mix=("out", "in"), role="mlp_in"),
    ]
    found = rows(model, layouts=layouts)
    assert [found[f"0.qkv.weight#{part}"].std for part in ("query", "key", "value")] == [
        32**-0.5,
        32**-0.5,
        32**-0.8,
    ]
    apply(model, rule=APART, layouts=layouts)
    q, _, v = model.get_parameter("1.qkv.weight").detach().chunk(3)
    assert float(q.std()) == pytest.approx(32**-0.5, rel=0.12)
    assert float(v.std()) == pytest.approx(32**-0.8, rel=0.12)


def test_parts_may_stand_on_the_class() -> None:
    class Own(nn.Module):
        initrate_layout: ClassVar = {"table": ("in", "out"), "parts": ("key", "value")}

        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.zeros(16, 8))

    assert list(rows(Own())) == ["table#key", "table#value"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layouts": [Layout("Blokc", mix=("out", "in"))]}, "fits no parameter"),
        ({"layouts": [Layout(Block, qkv=("out", "in"))]}, "fits no parameter"),
        ({"layouts": [Layout("*.kqv", weight=("out", "in"))]}, "fits no parameter"),
        ({"layouts": 3}, "layouts is 3: expected a list"),
        ({"include": "blokc*"}, "include has 'blokc.': no tensor has such a name"),
        ({"exclude": ["*.bias", "qkv*"]}, "exclude has '..bias': no tensor has such a name"),
        ({"include": 0}, "include is 0: expected a pattern"),
        ({"exclude": True}, "exclude is True: expected a pattern"),
        (
            {"layouts": [Layout("*.qkv", weight=("out", "in"), parts=FIVE)]},
            "96 outputs, which are not 5 equal parts",
        ),
    ],
)
def test_what_fits_nothing_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(Block(), rule=Rule(gamma=0.5), unknown="keep", **options)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Layout("A", table=cast("Any", 3)), "'table' is 3: expected axes"),
        (lambda: Layout("A", w=("out", "in"), parts="qkv"), "parts is 'qkv'"),
        (lambda: Layout("A", w=("out", "in"), parts=("query",), role="key"), "and no role"),
        (lambda: Layout("A", w=("out", "in"), parts=("query", "query")), "name a role twice"),
        (lambda: Layout("A", w=("out", "in"), parts=("qeury",)), "did you mean 'query'"),
    ],
)
def test_layouts_that_say_nothing_sensible(made: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        made()


def test_keys_of_a_layout_on_a_class_are_names() -> None:
    class Own(nn.Module):
        initrate_layout: ClassVar = {3: ("in", "out")}

        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.zeros(16, 8))

    with pytest.raises(InputError, match="keys that are no names"):
        plan(Own(), gamma=0.5)


def _flat() -> nn.Module:
    model = nn.Linear(4, 4)
    model.weight = nn.Parameter(torch.ones(7))
    return model


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: nn.LazyLinear(4), "'weight' has no shape yet"),
        (lambda: torch.jit.script(nn.Linear(2, 2)), "model is a ScriptModule"),
        (_flat, r"has the shape \(7,\), where a Linear has 2 axes"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_odd_models_are_refused_in_one_line(model: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(model(), gamma=0.5).raise_for_refused()


def test_rates_by_role_need_no_rule_and_unknown_options_are_named() -> None:
    model = nn.Sequential(Attention())
    found = initrate.plan(model, gamma=0.8, gamma_by_role={"qk": 0.5})
    assert found.rule == APART
    with pytest.raises(InputError, match="rule and gamma_by_role are both given"):
        initrate.plan(model, rule=Rule(gamma=0.8), gamma_by_role={"qk": 0.5})
    with pytest.raises(InputError, match="names 'qk', and each of its roles has a draw"):
        initrate.plan(model, rule="gpt2", gamma_by_role={"qk": 0.5})
    for function in (plan, apply, audit):
        assert function(Attention(), gamma=0.8, gamma_by_role={"qk": 0.5}).rule == APART
    with pytest.raises(InputError, match="did you mean 'unknown'"):
        initrate.plan(model, gamma=0.8, unknow="keep")


def test_a_plan_and_an_audit_print_as_tables() -> None:
    model = nn.Sequential(*(nn.Linear(64, 64, bias=False) for _ in range(3)))
    text = str(initrate.plan(model, gamma=0.5))
    assert text.splitlines()[0].startswith("name") and "0.125" in text and len(text) < 400
    text = str(initrate.apply(model, gamma=0.5))
    assert "as planned" in text and text.splitlines()[-1].startswith("rule formula")


def test_modules_that_no_walk_can_pass_are_refused() -> None:
    class Unmade(nn.Module):
        def __init__(self) -> None:
            pass

    loop = nn.Sequential(nn.Linear(2, 2))
    loop.add_module("again", nn.Sequential(loop))
    for model, message in (
        (Unmade(), r"Unmade was made without super\(\)"),
        (nn.ModuleList([Unmade()]), r"Unmade was made without super\(\)"),
        (loop, "Sequential holds itself"),
    ):
        with pytest.raises(InputError, match=message):
            plan(model, gamma=0.5)

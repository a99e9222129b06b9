"""Audits: what each finding fires on, and what it leaves alone."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from initrate.errors import FindingError, InputError
from initrate.measure import moments
from initrate.rule import (
    CODES,
    Audit,
    Finding,
    Rule,
    Slice,
    WeightRecord,
    draw_window,
    make_audit,
    named_rule,
    plan_records,
)

RULE = Rule(gamma=0.5)
RANDOM = np.random.default_rng(7)
Tensor = tuple[WeightRecord, NDArray[np.float64]]


def normal(std: float, *shape: int) -> NDArray[np.float64]:
    return RANDOM.normal(scale=std, size=shape)


def weight(name: str, values: NDArray, role: str = "mlp_in", **more) -> Tensor:
    """A map whose tensor is [out, in]."""
    d_out, d_in = values.shape
    return WeightRecord(
        name, values.shape, (role,), **{"d_in": d_in, "d_out": d_out} | more
    ), values


def bias(name: str, values: NDArray, *, of: str = "", d_in: int = 64) -> Tensor:
    return WeightRecord(name, values.shape, ("bias",), d_in=d_in, of=of), values


def table(name: str, values: NDArray, role: str = "token_embedding", **more) -> Tensor:
    rows, width = values.shape
    return WeightRecord(name, values.shape, (role,), d_in=width, rows=rows, **more), values


def norm(name: str, values: NDArray, *, eps: float = 1e-5) -> Tensor:
    return WeightRecord(name, values.shape, ("norm",), eps=eps), values


def audit(*tensors: Tensor, rule: Rule | None = RULE, waive: tuple[str, ...] = ()) -> Audit:
    plan = plan_records([record for record, _ in tensors], RULE if rule is None else rule)
    measured = {record.key: moments(values) for record, values in tensors}
    return make_audit(plan, measured, rule=rule, waive=waive)


def found(*tensors: Tensor, rule: Rule | None = RULE) -> set[tuple[str, tuple[str, ...]]]:
    return {(finding.code, finding.names) for finding in audit(*tensors, rule=rule).findings}


def codes(*tensors: Tensor, rule: Rule | None = RULE) -> list[str]:
    return sorted({finding.code for finding in audit(*tensors, rule=rule).findings})


def as_planned(record: WeightRecord, rule: Rule = RULE) -> Tensor:
    row = plan_records([record], rule).rows[0]
    return record, draw_window(row, 0, 0, row.size).reshape(row.shape).astype(np.float64)


GOOD = weight("h.0.fc.weight", normal(0.125, 256, 64))


def test_a_model_as_the_rule_has_it_has_no_finding():
    result = audit(
        table("wte.weight", normal(0.125, 500, 64)),
        GOOD,
        bias("h.0.fc.bias", np.zeros(256), of="h.0.fc.weight"),
        norm("ln.weight", np.ones(64)),
    )
    assert result.ok, result.findings
    assert [row.as_planned for row in result.rows] == [True, True, True, None]
    assert result.raise_for_findings() is None


@pytest.mark.parametrize("size", [1, 2, 3, 8, 64, 1000, 100_000])
def test_the_tolerance_follows_the_number_of_values(size: int):
    record = WeightRecord("w", (size,), ("linear",), d_in=64)
    outside = 0.125 * (1 + 0.01 + 12 / math.sqrt(size))
    for _ in range(20):
        assert codes((record, normal(0.125, size))) == []
    # Of one or two values, nothing but a large deviation can be told from chance.
    assert "IR101" in codes((record, np.full(size, outside)))


def test_ir101_the_rule_has_no_effect():
    off = weight("h.0.fc.weight", normal(0.02, 200, 64))
    assert found(off) == {("IR101", ("h.0.fc.weight",))}
    assert codes(GOOD) == []
    assert codes(off, rule=None) == []


def test_ir101_puts_what_is_alike_into_one_finding():
    layers = [weight(f"h.{i}.fc.weight", normal(0.02, 256, 64)) for i in range(12)]
    (finding,) = audit(*layers).findings
    assert len(finding.names) == 12
    assert "and 9 more" in str(finding)
    assert "the rule gives 0.125" in str(finding)


def test_ir101_of_a_bias_that_should_be_zero():
    assert found(GOOD, bias("h.0.fc.bias", normal(0.01, 256))) == {("IR101", ("h.0.fc.bias",))}


def test_ir102_the_outputs_taken_for_the_inputs():
    wrong = weight("h.0.fc.weight", normal(256**-0.5, 256, 64))
    assert found(wrong) == {("IR102", ("h.0.fc.weight",))}
    assert "256 inputs" in str(audit(wrong).findings[0])
    square = weight("h.0.o.weight", normal(0.02, 64, 64), "attention_output")
    assert codes(square) == ["IR101"]


def test_ir102_is_not_told_of_a_chance_meeting():
    """256^-0.6 is 64^-0.8: under another gamma, one kind of map of several looks like fan-out."""
    rule = Rule(gamma=0.8)
    tensors = [weight("in", normal(64**-0.6, 256, 64)), weight("out", normal(256**-0.6, 64, 256))]
    assert codes(*tensors, rule=rule) == ["IR101"]
    assert codes(tensors[1], rule=rule) == ["IR102"]


def test_ir102_with_the_division_by_the_residual():
    rule = Rule(gamma=0.5, residual="sqrt_2L")
    wrong = normal(256**-0.5 / 4, 256, 64)
    assert codes(weight("o", wrong, "mlp_out", n_layers=8), rule=rule) == ["IR102"]


def test_ir103_copies_of_one_draw():
    values = normal(0.125, 256, 64)
    first, second = weight("h.0.fc.weight", values), weight("h.1.fc.weight", values)
    assert found(first, second) == {("IR103", ("h.0.fc.weight", "h.1.fc.weight"))}
    assert codes(first, second, rule=None) == ["IR103"]
    assert codes(first, weight("h.1.fc.weight", normal(0.125, 256, 64))) == []


@pytest.mark.parametrize(
    "tensors",
    [
        [norm(f"h.{i}.ln.weight", np.ones(64)) for i in range(3)],
        [bias(f"h.{i}.bias", np.zeros(64)) for i in range(3)],
        [(WeightRecord(f"h.{i}.A", (64,), ("structured",)), np.arange(64.0)) for i in range(3)],
        [table(f"{side}.pos", np.eye(64), "position", keep="frozen") for side in ("en", "de")],
        [weight(f"h.{i}.gate", np.full((4, 4), 0.25)) for i in range(3)],
        [weight(f"h.{i}.gate", np.array([[0.25, -0.125]])) for i in range(3)],
    ],
    ids=["norms", "zero biases", "structured", "frozen tables", "constants", "two values"],
)
def test_ir103_leaves_alone_what_is_alike_by_nature(tensors: list[Tensor]):
    assert "IR103" not in codes(*tensors)
    assert codes(*tensors, rule=None) == []


def test_ir104_outliers():
    values = normal(0.125, 256, 64)
    values[3, 4] = 0.125 * 9
    assert found(weight("w", values)) == {("IR104", ("w",))}
    assert codes(weight("w", values), rule=None) == ["IR104"]
    assert codes(weight("w", np.clip(values, -0.5, 0.5))) == []


def test_ir104_of_a_uniform_draw():
    uniform = named_rule("torch-default")
    values = RANDOM.uniform(-0.125, 0.125, size=(256, 64))
    assert codes(weight("w", values), rule=uniform) == []
    values[0, 0] = 0.15
    assert codes(weight("w", values), rule=uniform) == ["IR104"]


@pytest.mark.parametrize("size", [1, 2, 5, 30])
def test_ir104_says_nothing_of_few_values(size: int):
    values = np.zeros(size)
    values[0] = 1.0
    record = WeightRecord("w", (size,), ("linear",), d_in=64)
    assert codes((record, values), rule=None) == []


def test_ir105_a_bias_that_swamps_its_weights():
    small = Rule(gamma=0.8, bias="keep")
    fc = weight("fc.weight", normal(64**-0.8, 256, 64))
    swamping = bias("fc.bias", RANDOM.uniform(-0.125, 0.125, 256), of="fc.weight")
    assert found(fc, swamping, rule=small) == {("IR105", ("fc.bias",))}
    assert codes(fc, swamping, rule=None) == ["IR105"]
    assert codes(fc, bias("fc.bias", np.zeros(256), of="fc.weight"), rule=small) == []


def test_ir105_leaves_the_default_of_torch_alone():
    """Biases and weights of one uniform draw: which is larger is chance."""
    for _ in range(20):
        fc = weight("fc.weight", RANDOM.uniform(-0.125, 0.125, (256, 64)))
        beside = bias("fc.bias", RANDOM.uniform(-0.125, 0.125, 256), of="fc.weight")
        assert codes(fc, beside, rule=None) == []


def test_ir105_of_a_fused_weight_looks_at_its_largest_part():
    values = np.concatenate([normal(0.125, 64, 64), normal(0.01, 64, 64)])
    parts = [
        WeightRecord(
            "qk.weight", (128, 64), (role,), d_in=64, part=role, where=Slice(0, 64 * i, 64)
        )
        for i, role in enumerate(("query", "key"))
    ]
    halves = [(parts[0], values[:64]), (parts[1], values[64:])]
    assert codes(*halves, bias("qk.bias", normal(0.1, 128)), rule=None) == []
    assert found(*halves, bias("qk.bias", normal(0.5, 128)), rule=None) == {("IR105", ("qk.bias",))}


@pytest.mark.parametrize("kind", ["as the rule draws it", "constant", "beside nothing"])
def test_ir105_leaves_alone_what_is_meant(kind: str):
    fc = weight("fc.weight", normal(64**-0.8, 256, 64))
    rule = Rule(gamma=0.8, bias="torch")
    drawn = RANDOM.uniform(-0.125, 0.125, 256)
    tensors = {
        "as the rule draws it": (fc, bias("fc.bias", drawn, of="fc.weight")),
        "constant": (fc, bias("fc.bias", np.ones(256), of="fc.weight")),
        "beside nothing": (bias("gate.bias", drawn),),
    }[kind]
    assert "IR105" not in codes(*tensors, rule=rule)


def test_ir106_embeddings_of_another_size():
    wte = table("wte.weight", normal(1.0, 500, 64))
    assert found(wte, GOOD, rule=None) == {("IR106", ("wte.weight",))}
    assert codes(table("wte.weight", normal(0.125, 500, 64)), GOOD, rule=None) == []


def test_ir106_leaves_alone_what_the_rule_means():
    rule = Rule(gamma=0.5, gamma_by_role={"embedding": 0.0})
    assert codes(table("wte.weight", normal(1.0, 500, 64)), GOOD, rule=rule) == []
    token = (WeightRecord("cls", (1, 64), ("token_embedding",), d_in=64, rows=1), normal(1, 1, 64))
    assert codes(token, GOOD, rule=None) == []


def test_ir107_an_eps_that_bites():
    rule = Rule(gamma=1.5)
    fc = weight("fc.weight", normal(64**-1.5, 256, 64))
    wte = table("wte.weight", normal(64**-1.5, 500, 64))
    assert found(wte, norm("ln_1.weight", np.ones(64)), fc, rule=rule) == {
        ("IR107", ("ln_1.weight",))
    }
    assert codes(wte, norm("ln_1.weight", np.ones(64), eps=1e-12), fc, rule=rule) == []
    result = audit(wte, norm("ln_1.weight", np.ones(64)), rule=rule)
    (finding,) = result.findings
    variance = result.rows[0].std ** 2
    assert f"gives {math.sqrt(variance / (variance + 1e-5)):.3f} in place of 1" in str(finding)


@pytest.mark.parametrize(
    "before",
    [
        [table("bias_table", normal(0.001, 32, 8))],
        [table("positions", normal(0.001, 32, 64), "position")],
        [
            table("wte.weight", normal(0.001, 500, 64)),
            table("wpe.weight", normal(1.0, 32, 64), "position"),
        ],
        [
            (
                WeightRecord("patch.weight", (64, 3, 4, 4), ("convolution",), d_in=48),
                normal(0.1, 64, 3, 4, 4),
            ),
            table("cls", normal(0.001, 50, 64)),
        ],
        [],
    ],
    ids=["another width", "no tokens", "large positions", "patches", "nothing"],
)
def test_ir107_leaves_alone_what_does_not_feed_the_norm_alone(before: list[Tensor]):
    assert "IR107" not in codes(*before, norm("ln.weight", np.ones(64)), rule=None)


@pytest.mark.parametrize(("multiplier", "expected"), [(1.0, ["IR107"]), (8.0, []), (math.nan, [])])
def test_ir107_counts_what_a_table_is_multiplied_by(multiplier: float, expected: list[str]):
    tensors = [table("wte", normal(0.005, 500, 64)), norm("ln.weight", np.ones(64))]
    plan = plan_records([record for record, _ in tensors], RULE)
    measured = {record.key: moments(values) for record, values in tensors}
    result = make_audit(plan, measured, rule=None, multipliers={"wte": multiplier})
    assert [finding.code for finding in result.findings] == expected


def test_a_trained_model_without_a_rule_is_not_judged_as_a_start():
    values = normal(0.125, 256, 64)
    values[0, 0] = 3.0
    tensors = [weight("w", values), bias("b", normal(1.0, 256), of="w")]
    trained = norm("ln.weight", normal(0.1, 64) + 1)
    assert codes(*tensors, trained, rule=None) == []
    assert codes(*tensors, norm("ln.weight", np.ones(64)), rule=None) == ["IR104", "IR105"]
    assert "IR104" in codes(*tensors, trained)


def test_ir111_what_the_rule_does_not_cover():
    refused = WeightRecord("x", (8, 64), refuse="is a parameter of X, whose layout is not known")
    assert found(GOOD, (refused, normal(0.1, 8, 64))) == {("IR111", ("x",))}
    assert codes(GOOD, (refused, normal(0.1, 8, 64)), rule=None) == []
    plan = plan_records([refused], RULE, unknown_tensors="keep")
    kept = make_audit(plan, {"x": moments(normal(0.1, 8, 64))}, rule=RULE)
    assert [finding.code for finding in kept.findings] == ["IR111"]
    assert codes(norm("ln.weight", np.ones(64))) == []


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("rule", [RULE, None])
def test_ir112_values_that_are_not_finite(bad: float, rule: Rule | None):
    values = normal(0.125, 256, 64)
    values[1, 2] = bad
    result = audit(weight("w", values), rule=rule)
    assert [(finding.code, finding.names) for finding in result.findings] == [("IR112", ("w",))]
    json.dumps(result.to_dict(), allow_nan=False)
    assert audit(GOOD, rule=rule).ok


def test_a_code_that_is_waived_is_no_finding():
    off = weight("w", normal(0.02, 200, 64))
    result = audit(off, waive=("IR101",))
    assert result.ok
    assert [finding.code for finding in result.waived] == ["IR101"]
    assert "1 waived" in result.summary()
    with pytest.raises(InputError, match="unknown finding to waive 'IR999'"):
        audit(off, waive=("IR999",))


def test_one_code_may_be_waived_as_text():
    record, values = weight("w", normal(0.02, 200, 64))
    plan = plan_records([record], RULE)
    assert make_audit(plan, {"w": moments(values)}, rule=RULE, waive="IR101").ok


def test_findings_are_raised_in_one_line():
    result = audit(weight("a", normal(0.02, 200, 64)), (WeightRecord("x", (2,)), normal(1, 2)))
    with pytest.raises(FindingError) as raised:
        result.raise_for_findings()
    line = str(raised.value)
    assert "IR101 a: " in line and "IR111 x: " in line and "\n" not in line
    assert isinstance(raised.value, AssertionError)


def test_without_a_rule_nothing_is_expected():
    result = audit(weight("w", normal(0.02, 200, 64)), rule=None)
    row = result.rows[0]
    assert row.as_planned is None and row.plan.std is None and row.interval is None
    assert row.gamma is not None and abs(row.gamma - -math.log(0.02) / math.log(64)) < 0.02
    assert result.to_dict()["rule"] is None


@pytest.mark.parametrize(
    ("record", "values"),
    [
        (WeightRecord("x", (3,)), np.ones(3)),
        (WeightRecord("x", (3,), ("bias",), d_in=1), np.ones(3)),
        (WeightRecord("x", (3,), ("linear",), d_in=64), np.zeros(3)),
        (WeightRecord("x", (1,), ("linear",), d_in=64), np.array([math.inf])),
    ],
    ids=["no d_in", "d_in 1", "zero", "infinite"],
)
def test_where_no_rate_is_implied(record: WeightRecord, values: NDArray):
    row = audit((record, values), rule=None).rows[0]
    assert row.gamma is None


def test_gamma_by_role():
    rule = Rule(gamma=0.5, gamma_by_role={"embedding": 0.8})
    tensors = [
        as_planned(WeightRecord("wte", (500, 64), ("token_embedding",), d_in=64, rows=500), rule),
        as_planned(WeightRecord("fc", (256, 64), ("mlp_in",), d_in=64), rule),
        bias("fc.bias", normal(0.1, 64)),
    ]
    rates = audit(*tensors, rule=rule).gamma_by_role()
    assert rates.keys() == {"token_embedding", "mlp_in"}
    assert abs(rates["token_embedding"] - 0.8) < 0.01 and abs(rates["mlp_in"] - 0.5) < 0.01


def test_the_table_gathers_layers():
    layers = [weight(f"h.{i}.fc.weight", normal(0.125, 256, 64)) for i in range(12)]
    layers.append(weight("h.12.fc.weight", normal(0.02, 256, 64)))
    result = audit(*layers)
    _, rows = result.table(whole=False)
    assert [(row[0], row[-1]) for row in rows] == [
        ("h.*.fc.weight ×12", "as planned"),
        ("h.12.fc.weight", "differs"),
    ]
    assert len(result.table()[1]) == 13
    assert result.summary().startswith("rule formula, γ 0.5; 12 of 13 tensors as planned")


def test_the_table_in_a_notebook_shows_findings_first_and_escapes():
    bad = weight("h.9.<b>.weight", normal(0.02, 256, 64))
    many = [weight(f"h.{i}.fc.weight", normal(0.125, 256, 64)) for i in range(60)]
    html = audit(*many, bad)._repr_html_()
    assert "<b>.weight" not in html and "&lt;b&gt;.weight" in html
    marked, folded = html.split("<details>")
    assert "<td><strong>h.9.&lt;b&gt;.weight" in marked and "h.0.fc.weight" not in marked
    assert "60 further rows" in folded
    assert "<li>IR101" in marked
    assert html.count("color") == html.count("color:inherit") > 0


def test_a_finding_tells_its_meaning():
    plain = Finding("IR110", (), "the loss is 100").to_dict()
    assert plain["meaning"] == CODES["IR110"]
    assert str(Finding("IR110", (), "the loss is 100")) == "IR110 the loss is 100"
    assert list(CODES) == [f"IR{number}" for number in range(101, 113)]

"""Apply: all or nothing, the same again, and what depends on what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

from initrate.errors import InputError
from initrate.frameworks.torch import apply, plan
from initrate.rule import DENSE_ROLES, Rule, draw_window


class Model(nn.Module):
    """Tied, fused, norms, biases: a little of everything."""

    def __init__(self, d: int = 24, order: int = 1) -> None:
        super().__init__()
        modules = {
            "wte": nn.Embedding(30, d),
            "attn": nn.MultiheadAttention(d, 2),
            "norm": nn.LayerNorm(d),
            "mlp": nn.ModuleDict({"fc1": nn.Linear(d, 4 * d), "fc2": nn.Linear(4 * d, d)}),
            "lm_head": nn.Linear(d, 30, bias=False),
        }
        for name in list(modules)[::order]:
            self.add_module(name, modules[name])
        self.get_submodule("lm_head").weight = self.get_submodule("wte").weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def state(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(
        torch.equal(tensor, second[name]) for name, tensor in first.items()
    )


def applied(model: nn.Module, **options: object) -> dict[str, torch.Tensor]:
    assert apply(model, **{"gamma": 0.8, "seed": 7, **options}).ok  # pyright: ignore[reportArgumentType]
    return state(model)


BAD: dict[str, tuple[dict[str, object], str]] = {
    "gamma as text": ({"gamma": "0.8"}, "gamma"),
    "gamma not finite": ({"gamma": float("nan")}, "gamma"),
    "gamma and rule": ({"gamma": 0.8, "rule": Rule()}, "give one"),
    "neither": ({"gamma": None}, "give one"),
    "seed below zero": ({"seed": -1}, "seed is -1"),
    "seed of text": ({"seed": "0"}, "seed is '0'"),
    "seed of no whole number": ({"seed": 0.5}, "seed is 0.5"),
    "seed that is true": ({"seed": True}, "seed is True"),
    "mode": ({"mode": "scale"}, "unknown mode 'scale'"),
    "unknown": ({"unknown": "drop"}, "unknown way with unknown tensors"),
    "waive": ({"waive": ["IR999"]}, "unknown finding to waive 'IR999'"),
    "force": ({"force": "no"}, "force is 'no'"),
    "include": ({"include": [3]}, "include has 3"),
    "device": ({"materialize": "nowhere"}, "materialize is 'nowhere'"),
    "layouts": ({"layouts": [3]}, "layouts"),
    "too small": ({"gamma": 40.0}, "float32 cannot hold"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_options_are_refused_in_one_line_and_nothing_is_changed(name: str) -> None:
    options, text = BAD[name]
    model = Model()
    before, versions = state(model), [p._version for p in model.parameters()]
    with pytest.raises(InputError) as caught:
        apply(model, **{"gamma": 0.8, **options})  # pyright: ignore[reportArgumentType]
    assert text in str(caught.value) and "\n" not in str(caught.value)
    assert equal(state(model), before)
    assert [p._version for p in model.parameters()] == versions


def test_the_same_again_is_a_verified_no_op_and_another_seed_changes_all_that_is_drawn() -> None:
    model = Model()
    first = apply(model, gamma=0.8, seed=7)
    versions, values = [p._version for p in model.parameters()], state(model)
    second = apply(model, gamma=0.8, seed=7)
    assert first.ok and second == first
    assert [p._version for p in model.parameters()] == versions
    apply(model, gamma=0.8, seed=8)
    drawn = [row.record.name for row in plan(model, gamma=0.8) if row.action == "draw"]
    assert drawn
    for name in drawn:
        assert not bool((model.get_parameter(name) == values[name]).any()), name


def test_what_is_written_is_the_draw_of_each_row() -> None:
    model = Model()
    apply(model, gamma=0.8, seed=7)
    for row in plan(model, gamma=0.8):
        tensor = model.get_parameter(row.record.name).detach()
        if row.action == "draw" and row.record.where is None:
            right = draw_window(row, 7, 0, row.size).reshape(row.shape)
            assert np.array_equal(tensor.numpy(), right), row.name
    query, key, value = model.get_parameter("attn.in_proj_weight").detach().chunk(3)
    rows = {row.name: row for row in plan(model, gamma=0.8)}
    for part, name in ((query, "query"), (key, "key"), (value, "value")):
        row = rows[f"attn.in_proj_weight#{name}"]
        assert np.array_equal(part.flatten().numpy(), draw_window(row, 7, 0, row.size))


WRAPPED: dict[str, Callable[[], Any]] = {
    "reordered": lambda: Model(order=-1),
    "data parallel": lambda: nn.DataParallel(Model()),
    "compiled": lambda: torch.compile(Model(), backend="eager"),  # pyright: ignore[reportReturnType]
    "compiled inside": lambda: with_part(lambda m: torch.compile(m, backend="eager")),
    "checkpointed inside": lambda: with_part(checkpoint_wrapper),
    "averaged": lambda: torch.optim.swa_utils.AveragedModel(Model()),
    "several": lambda: nn.DataParallel(torch.compile(Model(), backend="eager")),  # pyright: ignore[reportArgumentType]
}


def with_part(wrap: Callable[[nn.Module], object]) -> nn.Module:
    model = Model()
    model.mlp = wrap(model.get_submodule("mlp"))  # pyright: ignore[reportAttributeAccessIssue, reportArgumentType]
    return model


@pytest.mark.parametrize("name", WRAPPED)
def test_neither_order_nor_wrappers_change_a_value(name: str) -> None:
    plain, wrapped = Model(), WRAPPED[name]()
    first, second = (apply(model, gamma=0.8, seed=7) for model in (plain, wrapped))
    assert {row.name: row.measured for row in first.rows} == {
        row.name: row.measured for row in second.rows
    }
    assert sorted(p.sum().item() for p in plain.parameters()) == sorted(
        p.sum().item() for p in wrapped.parameters()
    )


def test_values_and_audit_do_not_depend_on_threads() -> None:
    before = torch.get_num_threads()
    found = []
    try:
        for n in (1, 2, 5):
            torch.set_num_threads(n)
            model = Model(d=200)
            found.append((apply(model, gamma=0.8, seed=7), state(model)))
    finally:
        torch.set_num_threads(before)
    for audit, values in found[1:]:
        assert audit == found[0][0] and equal(values, found[0][1])


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("transposed", lambda w: w.t().contiguous().t()),
        ("columns of another", lambda w: torch.cat((w, w), 1)[:, : w.shape[1]]),
    ],
)
def test_parameters_that_are_not_contiguous_hold_the_same_values(
    name: str, make: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    plain, other = nn.Linear(12, 8), nn.Linear(12, 8)
    other.weight = nn.Parameter(make(other.weight.detach()))
    assert not other.weight.is_contiguous()
    assert equal(applied(plain), applied(other))


def test_tied_weights_are_drawn_once_by_the_name_of_the_embedding_and_stay_tied() -> None:
    model, untied = Model(order=-1), Model()
    untied.get_submodule("lm_head").weight = nn.Parameter(torch.ones(30, 24))
    apply(untied, gamma=0.8, seed=7)
    audit = apply(model, gamma=0.8, seed=7)
    rows = [row for row in audit.rows if row.name in ("wte.weight", "lm_head.weight")]
    assert [row.plan.record.aliases for row in rows] == [("lm_head.weight",)]
    assert model.get_parameter("lm_head.weight") is model.get_parameter("wte.weight")
    assert torch.equal(model.get_parameter("wte.weight"), untied.get_parameter("wte.weight"))


def test_shared_modules_have_one_row() -> None:
    shared = nn.Linear(8, 8)
    model = nn.ModuleDict({"first": shared, "second": shared})
    assert [row.name for row in apply(model, gamma=0.8).rows] == ["first.weight", "first.bias"]


def test_shared_views_without_an_overlap_are_parameters_of_their_own() -> None:
    both, model = torch.zeros(8, 4), nn.ModuleDict()
    for name, part in zip(("q_proj", "k_proj"), both.split(4), strict=True):
        model[name] = nn.Linear(4, 4, bias=False)
        model[name].weight = nn.Parameter(part)  # pyright: ignore[reportArgumentType]
    plain = nn.ModuleDict({n: nn.Linear(4, 4, bias=False) for n in ("q_proj", "k_proj")})
    assert equal(applied(plain), applied(model))
    assert torch.equal(both[:4], plain["q_proj"].weight)  # pyright: ignore[reportArgumentType]


def test_sizes_of_zero_and_scalars() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.none = nn.Linear(0, 4, bias=False)
            self.no_rows = nn.Linear(4, 0)
            self.temperature = nn.Parameter(torch.tensor(2.0))
            self.bias = nn.Parameter(torch.tensor(3.0))

    import warnings

    with warnings.catch_warnings():
        # Of torch, which says that it initializes nothing there.
        warnings.simplefilter("ignore", UserWarning)
        model = Odd()
    audit = apply(model, gamma=0.8)
    actions = {row.name: row.plan.action for row in audit.rows}
    assert actions["none.weight"] == actions["no_rows.weight"] == "keep"
    assert (float(model.temperature.detach()), float(model.bias.detach())) == (2.0, 0.0)


def test_frozen_parameters_are_kept_with_the_reason() -> None:
    model = Model()
    model.get_parameter("mlp.fc1.weight").requires_grad_(False)
    before = state(model)["mlp.fc1.weight"]
    audit = apply(model, gamma=0.8)
    (row,) = [row for row in audit.rows if row.name == "mlp.fc1.weight"]
    assert (row.plan.action, row.plan.reason) == ("keep", "frozen: requires_grad is False")
    assert torch.equal(model.get_parameter("mlp.fc1.weight"), before)


def test_apply_inside_of_inference_mode_gives_values_that_can_be_trained() -> None:
    model = Model()
    with torch.inference_mode():
        apply(model, gamma=0.8, seed=7)
    assert equal(state(model), applied(Model()))
    model.get_parameter("mlp.fc1.weight").sum().backward()


# Rescale.


def test_rescale_multiplies_the_values_that_are_there_to_the_std_of_the_rule() -> None:
    model = Model()
    rule = Rule(gamma=0.8, gamma_by_role={"qk": 0.4})
    before = state(model)
    audit = apply(model, rule=rule, mode="rescale")
    assert not [f for f in audit.findings if f.code in ("IR101", "IR102")]
    for row in audit.rows:
        if row.plan.action == "draw":
            assert row.std == pytest.approx(row.plan.std, rel=1e-6), row.name
    for name in ("wte.weight", "mlp.fc1.weight"):
        ratio = state(model)[name] / before[name]
        assert float(ratio.std()) < 1e-5 * float(ratio.mean()), name
    versions = [p._version for p in model.parameters()]
    apply(model, rule=rule, mode="rescale")
    assert [p._version for p in model.parameters()] == versions


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_rescale_is_settled_within_the_rounding_of_each_type(dtype: torch.dtype) -> None:
    model = Model().to(dtype)
    apply(model, gamma=0.6, mode="rescale")
    values = state(model)
    apply(model, gamma=0.6, mode="rescale")
    assert equal(state(model), values)


@pytest.mark.parametrize("value", [0.0, 0.5, float("nan"), float("inf")])
def test_rescale_refuses_what_has_no_std_before_any_write(value: float) -> None:
    model = Model()
    nn.init.constant_(model.get_parameter("mlp.fc2.weight"), value)
    before = {name: tensor.nan_to_num(7.0) for name, tensor in state(model).items()}
    with pytest.raises(InputError, match=r"'mlp\.fc2\.weight'"):
        apply(model, gamma=0.8, mode="rescale")
    assert equal({n: tensor.nan_to_num(7.0) for n, tensor in state(model).items()}, before)


@pytest.mark.parametrize("padding", [0, 3, 19])
def test_the_padding_row_stays_zero_and_the_audit_knows_it(padding: int) -> None:
    model = nn.Sequential(nn.Embedding(20, 4096, padding_idx=padding))
    audit = apply(model, gamma=0.8)
    weight = model.get_parameter("0.weight").detach()
    assert audit.ok, audit.findings
    assert not weight[padding].any()
    assert weight[torch.arange(20) != padding].std() == pytest.approx(4096**-0.8, rel=0.02)


def test_an_open_map_has_no_d_model_where_its_sides_differ() -> None:
    rule = Rule(gamma=0.5, d_in_by_role={role: "d_model" for role in DENSE_ROLES})
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 16))
    square, wide = (row for row in plan(model, rule=rule) if row.name.endswith("weight"))
    assert (square.action, square.d_in) == ("draw", 8)
    assert wide.action == "refuse"

"""The plan with an example: what the tracer adds to the layouts."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from initrate.frameworks.torch import Layout, apply, plan


def weight(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(*shape))


class One(nn.Module):
    """One parameter `thing`, used as a function says."""

    def __init__(self, use, *shape: int) -> None:
        super().__init__()
        self.thing = weight(*shape)
        self.use = use

    def forward(self, x):
        return self.use(self.thing, x)


def row_split(w, x):
    return sum(F.linear(a, b) for a, b in zip(x.chunk(2, -1), w.chunk(2, 1), strict=True))


def row_of(model: nn.Module, example, **options):
    return {row.name: row for row in plan(model, gamma=0.5, example=example, **options)}


def test_the_plan_draws_what_the_example_resolves():
    model = One(lambda w, x: x @ w, 64, 16)
    assert row_of(model, None)["thing"].action == "refuse"
    row = row_of(model, (3, 64))["thing"]
    assert (row.action, row.d_in, row.std) == ("draw", 64, 0.125)
    assert row.record.d_out == 16
    audit = apply(model, gamma=0.5, seed=0, example=(3, 64))
    assert audit.ok
    # 1024 normals: five standard errors of their std.
    assert abs(float(model.thing.detach().std()) / 0.125 - 1) < 5 / (2 * 1024) ** 0.5


def test_the_plan_takes_the_role_from_the_path():
    class Mlp(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.thing = weight(8, 4), weight(4, 8)

        def forward(self, x):
            return F.linear(F.linear(x, self.fc1), self.thing)

    rows = row_of(nn.Sequential(OrderedDict(mlp=Mlp())), (3, 4))
    assert rows["mlp.fc1"].role == "mlp_in"
    assert (rows["mlp.thing"].role, rows["mlp.thing"].d_in) == ("dense?", 8)


@pytest.mark.parametrize(
    ("use", "shape", "role"),
    [
        (lambda w, x: F.embedding(torch.tensor([1, 2]), w) + x[:, :2], (9, 6), "token_embedding"),
        (lambda w, x: x[:, :2] + w[torch.tensor([1])], (9, 6), "token_embedding|position"),
        (lambda w, x: F.conv1d(x.transpose(1, 2), w), (4, 6, 2), "convolution"),
    ],
)
def test_the_plan_takes_the_role_from_the_operation(use, shape, role):
    row = row_of(One(use, *shape), (3, 7, 6))["thing"]
    assert (row.action, set(row.role.split("|"))) == ("draw", set(role.split("|")))


@pytest.mark.parametrize(
    ("use", "shape", "saw"),
    [
        (lambda w, x: x * w, (6,), "place by place (mul)"),
        (lambda w, x: x @ w.cumsum(0), (6, 4), "cumsum"),
        (lambda w, x: x @ torch.tanh(w), (6, 4), "after tanh"),
        (row_split, (4, 6), "products of its parts"),
        (lambda w, x: F.linear(x @ w, w), (6, 4), "contracts 4"),
        (lambda w, x: x + 1, (6, 4), "does not use it"),
    ],
)
def test_what_the_example_does_not_resolve_stays_refused_with_what_it_saw(use, shape, saw):
    row = row_of(One(use, *shape), (3, 7, 6))["thing"]
    assert row.action == "refuse"
    assert saw in row.reason


def test_a_layout_that_the_example_contradicts_is_refused():
    model = One(lambda w, x: x @ w, 256, 64)
    wrong = Layout(One, thing=("out", "in"))
    assert row_of(model, None, layouts=[wrong])["thing"].d_in == 64
    row = row_of(model, (3, 256), layouts=[wrong])["thing"]
    assert row.action == "refuse"
    assert "layout says d_in 64, the example contracts 256" in row.reason
    right = Layout(One, thing=("in", "out"))
    assert row_of(model, (3, 256), layouts=[right])["thing"].d_in == 256


def test_a_linear_map_used_backwards_is_refused():
    class Both(nn.Linear):
        def forward(self, input):
            return F.linear(input, self.weight) @ self.weight

    model = Both(64, 16, bias=False)
    assert row_of(model, (3, 64))["weight"].action == "refuse"


def test_an_example_leaves_a_known_plan_as_it_is():
    model = nn.TransformerEncoderLayer(8, 2, 16)
    assert plan(model, gamma=0.8, example=(3, 2, 8)).rows == plan(model, gamma=0.8).rows


@pytest.mark.parametrize(
    ("use", "shape", "d_in", "d_out"),
    [
        (lambda w, x: F.linear(x[..., :1], w), (7, 1), 1, 7),
        (lambda w, x: x @ w, (6, 1), 6, 1),
        (lambda w, x: x @ w[1], (3, 6, 4), 6, 4),
        (lambda w, x: F.linear(x[..., :1], w), (1, 1), None, None),
    ],
)
def test_axes_of_one_place_are_told_apart_where_they_can_be(use, shape, d_in, d_out):
    row = row_of(One(use, *shape), (3, 7, 6))["thing"]
    assert (row.d_in, row.record.d_out) == (d_in, d_out)
    assert row.action == ("draw" if d_in else "refuse")

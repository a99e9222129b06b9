"""The tracer: what operations do with parameters, and what the plan makes of it."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from torch import nn

from initrate.errors import InputError
from initrate.frameworks.torch import plan, trace


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


PRODUCTS = [
    ("x @ W", lambda w, x: x @ w, (6, 4), 6, (0,)),
    ("W @ x", lambda w, x: w @ x[0].T, (4, 6), 6, (1,)),
    ("linear", lambda w, x: F.linear(x, w), (4, 6), 6, (1,)),
    ("linear of a wide batch", lambda w, x: F.linear(x[None], w), (4, 6), 6, (1,)),
    ("vector", lambda w, x: x @ w, (6,), 6, (0,)),
    ("einsum by heads", lambda w, x: torch.einsum("bsi,hdi->bhsd", x, w), (2, 5, 6), 6, (2,)),
    ("einsum back", lambda w, x: torch.einsum("bshd,hdo->bso", x.unflatten(-1, (2, 3)), w),
     (2, 3, 5), 6, (0, 1)),
    ("maps of each head", lambda w, x: torch.einsum("bshd,hde->bshe", x.unflatten(-1, (2, 3)), w),
     (2, 3, 5), 3, (1,)),
    ("split by view", lambda w, x: F.linear(x, w.view(2, 10, 6)[1]), (20, 6), 6, (1,)),
    ("cast", lambda w, x: F.linear(x.half(), w.half()).float(), (4, 6), 6, (1,)),
    ("copy", lambda w, x: x @ w.t().contiguous().clone(), (4, 6), 6, (1,)),
    ("chunks of a fused map", lambda w, x: [F.linear(x, part) for part in w.chunk(3)], (12, 6),
     6, (1,)),
    ("joined with itself", lambda w, x: F.linear(x, torch.cat([w, w])), (4, 6), 6, (1,)),
    ("joined along its inputs",
     lambda w, x: F.linear(x, torch.cat([w, torch.ones_like(w)], 1)), (4, 3), 3, (1,)),
    ("stacked", lambda w, x: torch.bmm(x[:2], torch.stack([w, w])), (6, 4), 6, (0,)),
    ("experts by index", lambda w, x: torch.bmm(x[:2], w[torch.tensor([2, 0])]), (3, 6, 4), 6,
     (1,)),
    ("experts of one tensor", lambda w, x: x @ w.view(3, 6, 4)[1], (18, 4), 6, (0,)),
    ("convolution", lambda w, x: F.conv1d(x.transpose(1, 2), w, groups=2), (4, 3, 2), 6, (1, 2)),
    ("transposed convolution",
     lambda w, x: F.conv_transpose1d(x.transpose(1, 2), w, stride=2), (6, 3, 4), 12, (0, 2)),
    ("bilinear", lambda w, x: F.bilinear(x, x[..., :3], w), (5, 6, 3), 18, (1, 2)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("use", "shape", "d_in", "axes"), [x[1:] for x in PRODUCTS], ids=[x[0] for x in PRODUCTS]
)
def test_a_product_says_which_axes_it_adds_up(use, shape, d_in, axes):
    for example in ((3, 7, 6), torch.randn(3, 7, 6)):
        found = trace(One(use, *shape), example)
        assert found.d_in("thing") == d_in
        assert {one.axes for one in found.of("thing") if one.kind == "contraction"} == {axes}
        assert found.uncovered == ()


OTHERS = [
    ("gain", lambda w, x: x * w, (6,), "elementwise"),
    ("bias of a product", lambda w, x: torch.addmm(w, x[0], x[0].T), (7,), "elementwise"),
    ("gain of a norm", lambda w, x: F.layer_norm(x, (6,), w), (6,), "elementwise"),
    ("token put before", lambda w, x: torch.cat([w.expand(3, 1, 6), x], 1), (6,), "elementwise"),
    ("positions by slice", lambda w, x: x + w[:7], (9, 6), "elementwise"),
    ("product and sum", lambda w, x: (x * w).sum(-1), (6,), "elementwise"),
    ("table", lambda w, x: F.embedding(torch.tensor([1, 2]), w) + x[:, :2], (9, 6), "table"),
    ("table by index", lambda w, x: x[:, :2] + w[torch.tensor([1, 2])], (9, 6), "table"),
    ("not understood", lambda w, x: x @ w.cumsum(0), (6, 4), "lost"),
    ("statistic of it", lambda w, x: x / w.norm(), (6, 4), "lost"),
    ("written to", lambda w, x: x @ w.mul_(2), (6, 4), "lost"),
    ("two parameters", lambda w, x: x @ (w.T @ w), (4, 6), "lost"),
    ("sum of parts", row_split, (4, 6), "lost"),
]


@pytest.mark.parametrize(
    ("use", "shape", "kind"), [x[1:] for x in OTHERS], ids=[x[0] for x in OTHERS]
)
def test_other_uses_are_told_apart(use, shape, kind):
    found = trace(One(use, *shape), (3, 7, 6))
    assert kind in {one.kind for one in found.of("thing")}
    assert found.d_in("thing") == (6 if kind == "table" else None)


def test_a_lost_parameter_names_the_operation():
    found = trace(One(lambda w, x: x @ w.cumsum(0), 6, 4), (3, 6))
    assert "cumsum" in found.describe("thing")


def test_a_parameter_that_nothing_uses_is_uncovered():
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.idle = nn.Linear(6, 4), nn.Linear(6, 4)

        def forward(self, x):
            return self.used(x)

    found = trace(Half(), (3, 6))
    assert found.uncovered == ("idle.weight", "idle.bias")
    assert found.describe("idle.weight") == "does not use it"


def test_uses_that_disagree_resolve_nothing():
    found = trace(One(lambda w, x: F.linear(x @ w, w), 6, 4), (3, 6))
    assert {use.d_in for use in found.of("thing")} == {4, 6}
    assert found.d_in("thing") is None


def test_a_tied_weight_has_all_uses_at_both_names():
    model = nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 9, bias=False))
    model[1].weight = model[0].weight
    found = trace(model, torch.zeros(2, 3, dtype=torch.int64))
    assert [use.kind for use in found.of("0.weight")] == ["table", "contraction"]
    assert found.of("0.weight") == found.of("1.weight")
    assert found.d_in("1.weight") == 6


class Experts(nn.Module):
    """Experts held as rows of one tensor, the second map used transposed."""

    def __init__(self, *, batched: bool) -> None:
        super().__init__()
        self.w1, self.w2 = weight(30, 4), weight(30, 4)
        self.router = nn.Linear(4, 3)
        self.batched = batched

    def forward(self, x):
        gates = self.router(x).softmax(-1)
        w1, w2 = self.w1.view(3, 10, 4), self.w2.view(3, 10, 4)
        if self.batched:
            out = torch.bmm(F.silu(torch.bmm(x.expand(3, *x.shape), w1.transpose(1, 2))), w2)
            return (out * gates.t()[..., None]).sum(0)
        return sum((F.silu(x @ w1[e].t()) @ w2[e]) * gates[:, e : e + 1] for e in range(3))


@pytest.mark.parametrize("batched", [False, True])
def test_experts_in_one_tensor_are_drawn_by_the_width_of_one(batched):
    model = Experts(batched=batched)
    found = trace(model, (5, 4))
    assert (found.d_in("w1"), found.d_in("w2")) == (4, 10)
    rows = {row.name: row for row in plan(model, gamma=0.5, example=(5, 4))}
    assert (rows["w1"].std, rows["w2"].std) == (4**-0.5, 10**-0.5)


@pytest.mark.parametrize("recurrent", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_modules_are_followed(recurrent):
    found = trace(recurrent(4, 5), (3, 2, 4))
    assert (found.d_in("weight_ih_l0"), found.d_in("weight_hh_l0")) == (4, 5)


# ---- running


class ByValue(nn.Module):
    """A forward that goes by the values of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        for i in (self.maps[0](x).isfinite().all(-1) & (x.sum(-1) > 0)).nonzero()[:, 0].tolist():
            x = x + self.maps[i](x)
        return x


def test_a_forward_that_needs_values_runs_with_a_real_batch():
    batch = torch.tensor([[1.0] * 4, [-1.0] * 4, [1.0] * 4])
    found = trace(ByValue(), batch)
    assert found.values
    assert found.uncovered == ("maps.1.weight", "maps.1.bias")
    assert found.d_in("maps.0.weight") == 4


def test_values_of_masks_and_places_are_known_without_those_of_the_model():
    class ByMask(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.maps = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
            self.limit = torch.tensor(2)

        def forward(self, x, mask):
            seen = torch.ones_like(mask) * mask
            seen[0] = 1
            if bool((seen.cumsum(-1)[..., -1] > 1).all()) and self.limit.item() == 2:
                x = self.maps[0](x[mask.bool()])
            for i in mask.nonzero()[:, -1].unique().tolist():
                x = x + self.maps[i + 1](x)
            return x

    mask = torch.tensor([[1, 1], [1, 1], [1, 0]])
    found = trace(ByMask(), (torch.empty(3, 2, 4, device="meta"), mask))
    assert (found.values, found.uncovered) == (False, ("maps.0.weight", "maps.0.bias"))
    mask[2, 1] = 1
    assert trace(ByMask(), (torch.empty(3, 2, 4, device="meta"), mask)).uncovered == ()
    assert mask.tolist() == [[1, 1]] * 3


def test_a_forward_that_needs_values_names_the_operation_without_them():
    with pytest.raises(InputError, match=r"nonzero.*give a real batch"):
        trace(ByValue(), (3, 4))
    with torch.device("meta"):
        model = ByValue()
    with pytest.raises(InputError, match="give a model with values"):
        trace(model, torch.ones(3, 4))


class Restless(nn.Module):
    """A forward that changes what it can."""

    def __init__(self, *, stop: bool = False) -> None:
        super().__init__()
        self.map, self.drop, self.norm = nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4)
        self.register_buffer("count", torch.zeros(()))
        self.cache = None
        self.stop = stop

    def forward(self, x):
        self.count += 1
        self.cache = self.map(x)
        self.register_buffer("late", x)
        self.seen = random.random() + np.random.random() + float(torch.rand(3).numel())
        if self.stop:
            raise KeyError("stop")
        return self.norm(self.drop(self.cache))


def numpy_state() -> list:
    return list(np.random.get_state(legacy=False)["state"]["key"])


@pytest.mark.parametrize("stop", [False, True])
@pytest.mark.parametrize("example", [(3, 4), torch.ones(3, 4)])
def test_the_model_is_not_changed(stop, example):
    model = Restless(stop=stop)
    model.drop.eval()
    held = {name: (id(p), p.clone()) for name, p in model.state_dict(keep_vars=True).items()}
    states = random.getstate(), numpy_state(), torch.get_rng_state()
    if stop:
        with pytest.raises(InputError, match="KeyError"):
            trace(model, example)
    else:
        trace(model, example)
    after = model.state_dict(keep_vars=True)
    assert set(after) == set(held)
    for name, (identity, values) in held.items():
        assert id(after[name]) == identity
        assert torch.equal(after[name], values)
    assert model.cache is None
    assert not hasattr(model, "seen")
    assert [model.training, model.drop.training, model.norm.training] == [True, False, True]
    assert all(p.requires_grad and p.grad is None for p in model.parameters())
    assert random.getstate() == states[0]
    assert numpy_state() == states[1]
    assert torch.equal(torch.get_rng_state(), states[2])


def test_the_model_runs_in_eval_mode():
    class Mode(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.map = nn.Linear(4, 4)

        def forward(self, x):
            return x if self.training else self.map(x)

    assert trace(Mode(), (3, 4)).uncovered == ()


def test_a_model_on_meta_is_traced_without_values():
    with torch.device("meta"):
        model = nn.Linear(8192, 28672)
    assert trace(model, (1, 4096, 8192)).d_in("weight") == 8192


def test_wrappers_do_not_change_the_names():
    found = trace(nn.DataParallel(nn.Sequential(nn.Linear(4, 6))), (3, 4))
    assert found.d_in("0.weight") == 4


def test_adapters_are_followed():
    model = get_peft_model(
        nn.Sequential(nn.Linear(4, 6)),  # type: ignore[arg-type]
        LoraConfig(target_modules=["0"], r=2),
    )
    found = trace(model, (3, 4))
    sizes = {name: found.d_in(name) for name in found.shapes if name.endswith("weight")}
    assert sizes == {"0.weight": 4, "0.lora_A.default.weight": 4, "0.lora_B.default.weight": 2}


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ("text", "expected a tensor"),
        (3, "expected a tensor"),
        ((), "no tensor and no shape"),
        ({"input": True}, "no tensor and no shape"),
        ({1: (3, 4)}, "names of arguments"),
        ((0, 4), "at least 1"),
        ({"inputs": (3, 4)}, "inputs"),
        ((3, 5), "the forward stops"),
        (torch.ones(3, 5), "the forward stops at this batch"),
    ],
)
def test_bad_examples_are_one_line(example, message):
    with pytest.raises(InputError, match=message) as caught:
        trace(nn.Linear(4, 6), example)
    assert "\n" not in str(caught.value)


def test_an_example_is_read_by_the_names_of_the_arguments():
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.map = nn.Embedding(9, 6), nn.Linear(3, 6)

        def forward(self, input_ids, features=None, *, double=False):
            out = self.table(input_ids)
            return out + self.map(features) if double else out

    model = Two()
    shapes = {"input_ids": (2, 5), "features": (2, 5, 3)}
    assert trace(model, {**shapes, "double": True}).uncovered == ()
    assert trace(model, shapes).uncovered == ("map.weight", "map.bias")
    assert trace(model, ((2, 5), (2, 5, 3))).d_in("table.weight") == 6


def test_unknown_names_are_errors():
    with pytest.raises(InputError, match="no parameter 'w'"):
        trace(nn.Linear(4, 6), (3, 4)).d_in("w")
    with pytest.raises(InputError, match="expected a torch"):
        trace("model", (3, 4))  # type: ignore[arg-type]

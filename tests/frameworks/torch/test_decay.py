"""Decay apart from the optimizer and on a schedule: exact against the formula."""

from __future__ import annotations

import copy
import io

import pytest
import torch
from torch import nn

from initrate.errors import InputError
from initrate.frameworks.torch import independent_decay, param_groups, scheduled_decay
from initrate.rule import decay_window

STEPS = 6
LR = 0.05


def lr_at(step: int) -> float:
    return LR * (1 + step)


def trained(
    make, *, by_hand=None, attach=None, weight_decay: float = 0.0, steps: int = STEPS
) -> list[torch.Tensor]:
    """Weights after some steps of a small model; `by_hand` changes the weights before each."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).double()
    x, y = torch.randn(16, 6).double(), torch.randn(16, 3).double()
    optimizer = make(param_groups(model, weight_decay=weight_decay))
    handle = attach(optimizer) if attach else None
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        if by_hand is not None:
            with torch.no_grad():
                for p in model.parameters():
                    if p.dim() > 1:
                        p.mul_(1 - by_hand(step))
        optimizer.step()
    if handle is not None:
        assert handle.step == steps
    return [p.detach() for p in model.parameters()]


OPTIMIZERS = {
    "adamw": lambda groups: torch.optim.AdamW(groups, lr=LR),
    "adamw-foreach": lambda groups: torch.optim.AdamW(groups, lr=LR, foreach=True),
    "adamw-fused": lambda groups: torch.optim.AdamW(groups, lr=LR, fused=True),
    "sgd": lambda groups: torch.optim.SGD(groups, lr=LR, momentum=0.9),
    "rmsprop": lambda groups: torch.optim.RMSprop(groups, lr=LR),
}
SCHEDULES = {
    "constant": ((), [1, 1, 1, 1, 1, 1]),
    "window": (decay_window(2, 4), [0, 0, 1, 1, 0, 0]),
    "piecewise": (((0, 0.5), (3, 2.0)), [0.5, 0.5, 0.5, 2, 2, 2]),
    "callable": (lambda step: step / 10, [0, 0.1, 0.2, 0.3, 0.4, 0.5]),
}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize(("schedule", "factors"), SCHEDULES.values(), ids=SCHEDULES)
def test_independent_decay_is_the_formula(make, schedule, factors):
    expected = trained(make, by_hand=lambda step: 0.1 * factors[step])
    found = trained(
        make,
        weight_decay=0.1,
        attach=lambda optimizer: independent_decay(optimizer, schedule=schedule),
    )
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)
    plain = trained(make)
    assert not torch.equal(found[0], plain[0])


@pytest.mark.parametrize("make", [OPTIMIZERS["adamw"], OPTIMIZERS["adamw-fused"]])
@pytest.mark.parametrize(("schedule", "factors"), SCHEDULES.values(), ids=SCHEDULES)
def test_scheduled_decay_takes_lr_times_weight_decay(make, schedule, factors):
    expected = trained(make, by_hand=lambda step: lr_at(step) * 0.1 * factors[step])
    found = trained(
        make,
        weight_decay=0.1,
        attach=lambda optimizer: scheduled_decay(optimizer, schedule=schedule),
    )
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def stepped(attach, *, steps: int = 4):
    model = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(param_groups(model, weight_decay=0.1), lr=LR)
    handle = attach(optimizer)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = lr_at(step)
        model.weight.grad = torch.ones_like(model.weight)
        model.bias.grad = torch.ones_like(model.bias)
        optimizer.step()
    return model, optimizer, handle


def test_the_handle_reports_what_was_taken():
    _, _, independent = stepped(lambda o: independent_decay(o, schedule=decay_window(1, 3)))
    assert independent.sums() == {"decayed": pytest.approx(0.2), "not decayed": 0}
    assert independent.weight_decay(2) == {"decayed": 0.1, "not decayed": 0}
    assert independent.weight_decay() == {"decayed": 0, "not decayed": 0}
    _, _, coupled = stepped(lambda o: scheduled_decay(o, schedule=decay_window(1, 3)))
    taken = 0.1 * (lr_at(1) + lr_at(2))
    assert coupled.sums() == {"decayed": pytest.approx(taken), "not decayed": 0}


def test_the_count_survives_saving_and_loading():
    model, optimizer, handle = stepped(lambda o: independent_decay(o, schedule=decay_window(1, 9)))
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    for order in ("attach, load", "load, attach"):
        other = copy.deepcopy(model)
        fresh = torch.optim.AdamW(param_groups(other, weight_decay=0.1), lr=LR)
        if order == "load, attach":
            fresh.load_state_dict(state)
        again = independent_decay(fresh, schedule=decay_window(1, 9))
        if order == "attach, load":
            fresh.load_state_dict(state)
        assert again.step == handle.step == 4
        assert again.sums() == handle.sums()
        assert [group["weight_decay"] for group in fresh.param_groups] == [0, 0]
        before = other.weight.detach().clone()
        for p in other.parameters():
            p.grad = torch.zeros_like(p)
        for group in fresh.param_groups:
            group["lr"] = 0.0
        fresh.step()
        torch.testing.assert_close(other.weight.detach(), before * 0.9)
        assert again.step == 5


def test_a_state_that_knows_of_no_decay_is_refused():
    model = nn.Linear(3, 2)
    groups = param_groups(model, weight_decay=0.1)
    plain = torch.optim.AdamW([dict(group) for group in groups]).state_dict()
    undecayed = torch.optim.AdamW(param_groups(model, weight_decay=0.1))
    for group in undecayed.param_groups:
        group["weight_decay"] = 0.0
    for state, message in ((plain, "would decay beside"), (undecayed.state_dict(), "of no decay")):
        optimizer = torch.optim.AdamW(param_groups(model, weight_decay=0.1))
        independent_decay(optimizer)
        optimizer.load_state_dict(state)
        before = model.weight.detach().clone()
        for p in model.parameters():
            p.grad = torch.ones_like(p)
        with pytest.raises(InputError, match=message):
            optimizer.step()
        assert torch.equal(model.weight, before)


def test_a_group_that_would_decay_as_well_is_refused():
    _, optimizer, handle = stepped(independent_decay)
    optimizer.param_groups[0]["weight_decay"] = 0.1
    with pytest.raises(InputError, match=r"'decayed' of the optimizer has weight_decay 0\.1"):
        optimizer.step()
    handle.remove()
    optimizer.step()


def test_removing_gives_the_optimizer_its_decay_back():
    model, optimizer, handle = stepped(independent_decay)
    handle.remove()
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0]
    assert not any("decay_of" in group for group in optimizer.param_groups)
    before = model.weight.detach().clone()
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    fresh = torch.optim.AdamW(optimizer.param_groups)
    fresh.param_groups[0]["lr"] = LR
    fresh.step()
    torch.testing.assert_close(model.weight.detach(), before * (1 - LR * 0.1))


def test_one_number_for_all_groups_that_decay():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(param_groups(model, weight_decay=0.1))
    assert independent_decay(optimizer, 0.01).weight_decay() == {"decayed": 0.01, "not decayed": 0}


def test_a_weight_without_gradient_is_left_alone_unless_a_closure_makes_it():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(param_groups(model, weight_decay=0.5), lr=0.0)
    independent_decay(optimizer)
    before = model.weight.detach().clone()
    optimizer.step()
    assert torch.equal(model.weight, before)
    optimizer.step(lambda: 0.0)
    torch.testing.assert_close(model.weight.detach(), before / 2)


def test_a_step_that_a_scaler_leaves_out_does_not_decay():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(param_groups(model, weight_decay=0.5), lr=LR, fused=True)
    handle = independent_decay(optimizer)
    before = model.weight.detach().clone()
    for p in model.parameters():
        p.grad = torch.full_like(p, float("inf"))
    optimizer.grad_scale = torch.tensor(1.0)  # pyright: ignore[reportAttributeAccessIssue]
    optimizer.found_inf = torch.tensor(1.0)  # pyright: ignore[reportAttributeAccessIssue]
    optimizer.step()
    assert torch.equal(model.weight, before)
    assert handle.step == 0


def decaying(model: nn.Linear, weight_decay: object) -> torch.optim.Optimizer:
    optimizer = torch.optim.SGD(model.parameters())
    optimizer.param_groups[0]["weight_decay"] = weight_decay
    return optimizer


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (lambda m: torch.optim.SGD(m.parameters()), {}, "no group of the optimizer has"),
        (lambda m: torch.optim.AdamW(m.parameters()), {"weight_decay": -1.0}, "weight_decay is -1"),
        (lambda m: torch.optim.AdamW(m.parameters()), {"weight_decay": 1.5}, "at most 1"),
        (lambda m: torch.optim.AdamW(m.parameters()), {"schedule": [(0, 1)]}, "expected a tuple"),
        (lambda m: "adamw", {}, "optimizer is str"),
        (lambda m: decaying(m, float("nan")), {}, "weight_decay of a group is nan"),
        (lambda m: decaying(m, []), {}, "weight_decay of a group is "),
        (lambda m: decaying(m, -1.0), {}, "weight_decay of a group is -1"),
        (
            lambda m: torch.optim.AdamW(
                [
                    {"params": [m.weight], "weight_decay": 0.1},
                    {"params": [m.bias], "weight_decay": 0.2},
                ]
            ),
            {"weight_decay": 0.3},
            r"the groups have 0\.1, 0\.2",
        ),
    ],
)
def test_bad_input(make, options, message):
    with pytest.raises(InputError, match=message):
        independent_decay(make(nn.Linear(2, 2)), **options)


def test_two_decays_of_one_optimizer_and_an_optimizer_without_any():
    optimizer = torch.optim.AdamW(nn.Linear(2, 2).parameters())
    independent_decay(optimizer)
    with pytest.raises(InputError, match="attached already"):
        scheduled_decay(optimizer, schedule=())
    with pytest.raises(InputError, match="LBFGS has no weight_decay of its own"):
        scheduled_decay(torch.optim.LBFGS(nn.Linear(2, 2).parameters()), schedule=())


def test_a_group_that_comes_later_is_scheduled_too():
    one, other = nn.Linear(3, 2), nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(one.parameters(), weight_decay=0.1)
    handle = scheduled_decay(optimizer, schedule=lambda step: 0.5)
    optimizer.add_param_group({"params": list(other.parameters()), "weight_decay": 0.4})
    optimizer.step()
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.05, 0.2]
    assert handle.weight_decay() == {"0": 0.05, "1": 0.2}


def test_a_factor_that_would_turn_a_weight_round_is_refused_before_anything_changes():
    model, optimizer, handle = stepped(
        lambda o: independent_decay(o, schedule=((0, 1.0), (4, 20.0)))
    )
    before = model.weight.detach().clone()
    with pytest.raises(InputError, match="weight decay at step 4 is 2"):
        optimizer.step()
    assert torch.equal(model.weight, before)
    assert handle.step == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decay_step": "x"}, "decay_step of a group is 'x'"),
        ({"decay_step": float("inf")}, "decay_step of a group is inf"),
        ({"decay_of": None}, "decay_of of a group is None"),
        ({"decay_of": float("nan")}, "decay_of of a group is nan"),
        ({"decay_of": -1.0}, r"decay_of of a group is -1\.0: expected a number of at least 0"),
        ({"decay_sum": []}, "decay_sum of a group is"),
        ({"decay_sum": 10**400}, "decay_sum of a group is inf"),
    ],
)
def test_a_loaded_state_that_is_no_decay_of_ours_is_refused(
    changes: dict[str, object], message: str
):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.1)
    independent_decay(optimizer)
    optimizer.param_groups[0].update(changes)
    before = model.weight.detach().clone()
    model.weight.grad = torch.ones_like(model.weight)
    with pytest.raises(InputError, match=message):
        optimizer.step()
    assert torch.equal(model.weight, before)

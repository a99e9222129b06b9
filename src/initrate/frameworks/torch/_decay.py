"""Weight decay apart from the optimizer, or on a schedule: a hook before each of its steps.

The hook keeps what it knows in the optimizer's groups, as plain numbers: `decay_of`, the weight
decay of the group, `decay_step`, how many steps were taken, and `decay_sum`. So they are saved and
loaded with `optimizer.state_dict()`, and a hook that is attached after loading goes on from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch

from initrate.errors import InputError, whole_number
from initrate.rule import (
    DecaySchedule,
    check_decay_pairs,
    decay_factor,
    decay_number,
)
from initrate.rule._checks import finite_number
from initrate.rule._decay import MOST_STEPS

Mode = Literal["independent", "coupled"]
Group = dict[str, Any]

_TOO_MUCH = (
    "is {:g}: independent of the learning rate, a step takes that share of a weight; expected at "
    "most 1"
)
_KEYS = ("decay_of", "decay_step", "decay_sum")


class DecayHandle:
    """A decay that is attached to an optimizer: what it has done, and how to take it off."""

    def __init__(
        self, optimizer: torch.optim.Optimizer, hook: _StepHook, removable: Any, mode: Mode
    ) -> None:
        self.optimizer = optimizer
        self.mode = mode
        self._hook = hook
        self._removable = removable

    @property
    def step(self) -> int:
        """How many steps the optimizer has taken since the decay was attached, loads included."""
        return max(int(group.get("decay_step", 0)) for group in self.optimizer.param_groups)

    def weight_decay(self, step: int | None = None) -> dict[str, float]:
        """Return the weight decay of each group at a step, by default at the next one."""
        step = self.step if step is None else step
        whole_number("step", step, least=0, most=MOST_STEPS)
        factor = decay_factor(self._hook.schedule, step)
        return {
            name: float(group.get("decay_of", 0.0)) * factor
            for name, group in _names(self.optimizer).items()
        }

    def sums(self) -> dict[str, float]:
        """Return by group the sum over the steps so far of the share a step takes of a weight.

        Independent: the sum of weight decay. Coupled: the sum of lr times weight decay, which is
        that share for AdamW and SGD; Adam, whose decay goes through its moments, takes another.
        """
        return {
            name: float(group.get("decay_sum", 0.0))
            for name, group in _names(self.optimizer).items()
        }

    def remove(self) -> None:
        """Take the decay off: from now on the optimizer decays by the groups' weight decay itself.

        Groups whose number was replaced keep the new one.
        """
        self._removable.remove()
        for group in self.optimizer.param_groups:
            if "decay_of" in group:
                group["weight_decay"] = group["decay_of"]
            for key in _KEYS:
                group.pop(key, None)


def _names(optimizer: torch.optim.Optimizer) -> dict[str, Group]:
    """Return the groups by their names, or by their numbers where they have none of their own."""
    groups = optimizer.param_groups
    names = [str(group.get("name", number)) for number, group in enumerate(groups)]
    if len(set(names)) < len(names):
        names = [f"{name} {number}" for number, name in enumerate(names)]
    return dict(zip(names, groups, strict=True))


class _StepHook:
    """What is done before each step."""

    def __init__(self, schedule: DecaySchedule, mode: Mode) -> None:
        self.schedule = schedule
        self.mode: Mode = mode

    def __call__(
        self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        _refuse_decaying_twice(optimizer, self.mode)
        if _is_skipped(optimizer):
            return
        groups = [group for group in optimizer.param_groups if "decay_of" in group]
        # All numbers before any weight is touched: a schedule may raise.
        numbers = [self._number(group) for group in groups]
        # torch hands on the optimizer itself among the arguments of its step.
        closure = any(callable(given) for given in (*args[1:], kwargs.get("closure")))
        for group, number in zip(groups, numbers, strict=True):
            share = number
            if self.mode == "independent":
                _shrink(group["params"], number, all_of_them=closure)
            else:
                group["weight_decay"] = number
                share = number * float(group["lr"])
            group["decay_step"] += 1
            group["decay_sum"] += share

    def _number(self, group: Group) -> float:
        """Return the weight decay of a group at its next step."""
        step, own = _kept(group)
        number = own * decay_factor(self.schedule, step)
        if self.mode == "independent" and number > 1:
            raise InputError(f"weight decay at step {step} {_TOO_MUCH.format(number)}")
        return number


def _refuse_decaying_twice(optimizer: torch.optim.Optimizer, mode: Mode) -> None:
    """Refuse groups that the optimizer itself would decay beside the hook."""
    if mode == "coupled":
        for group in optimizer.param_groups:
            if "decay_of" not in group and group.get("weight_decay", 0):
                _take_over(group, float(group["weight_decay"]), mode)
        return
    for name, group in _names(optimizer).items():
        if group.get("weight_decay", 0):
            raise InputError(
                f"group {name!r} of the optimizer has weight_decay {group['weight_decay']}, and "
                "would decay beside the independent decay: set it to 0, or remove() the decay "
                "and attach it again"
            )
    if not any("decay_of" in group for group in optimizer.param_groups):
        raise InputError(
            "the state that the optimizer has loaded knows of no decay: attach the decay after "
            "load_state_dict"
        )


def _is_skipped(optimizer: torch.optim.Optimizer) -> bool:
    """Say whether a gradient scaler has told a fused optimizer to leave this step out."""
    found = getattr(optimizer, "found_inf", None)
    return isinstance(found, torch.Tensor) and bool(found.item())


@torch.no_grad()
def _shrink(parameters: list[torch.Tensor], share: float, *, all_of_them: bool) -> None:
    """Take a share of every weight that has a gradient, as the optimizer moves only these.

    With a closure the gradients are made later, and all weights are taken that can have one.
    """
    chosen = [p for p in parameters if p.grad is not None or (all_of_them and p.requires_grad)]
    if not share or not chosen:
        return
    if all(type(p) in (torch.nn.Parameter, torch.Tensor) for p in chosen):
        torch._foreach_mul_(chosen, 1 - share)  # pyright: ignore[reportPrivateImportUsage]
        return
    for parameter in chosen:
        parameter.mul_(1 - share)


def independent_decay(
    optimizer: torch.optim.Optimizer,
    weight_decay: float | None = None,
    *,
    schedule: DecaySchedule = (),
) -> DecayHandle:
    """Attach a decay that is independent of the learning rate, and return its handle.

    Before each step every decayed weight is multiplied by 1 - weight_decay * factor(step), with
    the factor of `schedule`: (step, factor) pairs, such as `decay_window(100, 200)`, or a function
    of the step, counted from 0. By default each group keeps its own number for weight decay;
    `weight_decay` puts one number in place of that of all groups that have one above 0. The
    groups' own weight_decay becomes 0, so that the optimizer does not decay as well.

    >>> from initrate.frameworks.torch import param_groups
    >>> from initrate.rule import decay_window
    >>> model = torch.nn.Linear(4, 2)
    >>> optimizer = torch.optim.AdamW(param_groups(model, weight_decay=1e-4), lr=3e-4)
    >>> decay = independent_decay(optimizer, schedule=decay_window(100, 200))
    >>> decay.weight_decay(100)
    {'decayed': 0.0001, 'not decayed': 0.0}
    """
    return _attach(optimizer, weight_decay, schedule, "independent")


def scheduled_decay(
    optimizer: torch.optim.Optimizer,
    weight_decay: float | None = None,
    *,
    schedule: DecaySchedule,
) -> DecayHandle:
    """Attach a schedule to the optimizer's own, coupled weight decay, and return its handle.

    Before each step the groups' weight_decay is set to weight_decay * factor(step); what a step
    takes of a weight is that times the learning rate. All else is as in `independent_decay`.

    >>> model = torch.nn.Linear(4, 2)
    >>> optimizer = torch.optim.AdamW(model.parameters(), lr=0.5, weight_decay=0.1)
    >>> decay = scheduled_decay(optimizer, schedule=lambda step: 0.5**step)
    >>> [decay.weight_decay(step)["0"] for step in (0, 1)]
    [0.1, 0.05]
    """
    return _attach(optimizer, weight_decay, schedule, "coupled")


def _attach(
    optimizer: torch.optim.Optimizer,
    weight_decay: float | None,
    schedule: DecaySchedule,
    mode: Mode,
) -> DecayHandle:
    # A wrapper such as accelerate's hands its steps on to the optimizer in it.
    inner = getattr(optimizer, "optimizer", optimizer)
    if not isinstance(inner, torch.optim.Optimizer):
        raise InputError(
            f"optimizer is {type(optimizer).__name__}: expected a torch.optim.Optimizer"
        )
    if not callable(schedule):
        check_decay_pairs("schedule", schedule)
    if any(isinstance(hook, _StepHook) for hook in inner._optimizer_step_pre_hooks.values()):
        raise InputError("the optimizer has a decay attached already: remove() that one first")
    if mode == "coupled" and any("weight_decay" not in group for group in inner.param_groups):
        raise InputError(
            f"{type(inner).__name__} has no weight_decay of its own: use independent_decay"
        )
    numbers = [_own(group) for group in inner.param_groups]
    if not any(numbers):
        raise InputError(
            "no group of the optimizer has a weight_decay above 0, so that nothing says which "
            "weights decay: make the groups by param_groups(model, weight_decay=...)"
        )
    if weight_decay is not None:
        number = decay_number("weight_decay", weight_decay)
        if len({n for n in numbers if n}) > 1:
            shown = ", ".join(f"{n:g}" for n in sorted({n for n in numbers if n}))
            raise InputError(
                f"weight_decay is {number:g}, and the groups have {shown}: leave it out to keep "
                "these, or give all groups that decay one number"
            )
        numbers = [number if n else 0.0 for n in numbers]
    if mode == "independent" and max(numbers) > 1:
        raise InputError(f"weight_decay {_TOO_MUCH.format(max(numbers))}")
    for group, number in zip(inner.param_groups, numbers, strict=True):
        _take_over(group, number, mode)
    hook = _StepHook(schedule, mode)
    return DecayHandle(inner, hook, inner.register_step_pre_hook(hook), mode)


def _own(group: Group) -> float:
    """Return the weight decay of a group: as it was saved by an earlier decay, or its own."""
    return decay_number(
        "weight_decay of a group", group.get("decay_of", group.get("weight_decay", 0.0))
    )


def _kept(group: Group) -> tuple[int, float]:
    """Return the step of a group and its weight decay, as the optimizer has kept or loaded them."""
    step = whole_number("decay_step of a group", group.get("decay_step"), least=0, most=MOST_STEPS)
    finite_number("decay_sum of a group", group.get("decay_sum"))
    return step, decay_number("decay_of of a group", group.get("decay_of"))


def _take_over(group: Group, number: float, mode: Mode) -> None:
    group["decay_of"] = number
    group.setdefault("decay_step", 0)
    group.setdefault("decay_sum", 0.0)
    if mode == "independent" and "weight_decay" in group:
        group["weight_decay"] = 0.0

"""Optuna: gamma and weight decay as parameters of a trial.

Nothing of Optuna is imported: a trial is whatever has its `suggest_float`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from initrate.errors import InputError
from initrate.rule import Rule
from initrate.rule._checks import finite_number, positive_number
from initrate.rule._roles import check_option_key

__all__ = ["SuggestsFloats", "suggest_rule", "suggest_weight_decay"]


@runtime_checkable
class SuggestsFloats(Protocol):
    """What is needed of a trial."""

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """Return a number between low and high."""
        ...


Range = tuple[float, float]


def suggest_rule(
    trial: SuggestsFloats,
    *,
    gamma: Range = (0.3, 1.0),
    by_role: Sequence[str] | Mapping[str, Range] = (),
    step: float | None = None,
    base: Rule | None = None,
    name: str = "gamma",
) -> Rule:
    """Return a rule whose rates the trial suggests: parameters `gamma`, and `gamma_qk` and so on.

    `by_role` names roles or groups that get a rate of their own, each within `gamma` or, given as
    a mapping, within a range of its own. All else is as in `base`. The best rule of a study is
    `suggest_rule(optuna.trial.FixedTrial(study.best_params), ...)` with the same options.

    >>> class Lowest:
    ...     def suggest_float(self, name, low, high, *, step=None, log=False):
    ...         return low
    >>> rule = suggest_rule(Lowest(), gamma=(0.4, 0.9), by_role={"qk": (0.5, 0.7)})
    >>> rule.gamma, rule.gamma_by_role
    (0.4, {'qk': 0.5})
    """
    _check_trial(trial)
    base = Rule() if base is None else base
    if not isinstance(base, Rule):
        raise InputError(f"base is {base!r}: expected a Rule")
    if isinstance(by_role, str) or not isinstance(by_role, Mapping | Sequence):
        raise InputError(f"by_role is {by_role!r}: expected names of roles, as in ['qk', 'vo']")
    whole = _range("gamma", gamma)
    if step is not None:
        positive_number("step", step)
    ranges = {
        check_option_key("by_role", key): _range(
            f"gamma of {key!r}", by_role[key] if isinstance(by_role, Mapping) else whole
        )
        for key in by_role
    }
    for key in ranges:
        if key in base.draws:
            raise InputError(f"by_role names {key!r}, for which the base has a draw of its own")
    found = trial.suggest_float(name, *whole, step=step)
    rates = {
        key: trial.suggest_float(f"{name}_{key}", *ends, step=step) for key, ends in ranges.items()
    }
    return replace(base, gamma=found, gamma_by_role={**base.gamma_by_role, **rates})


def suggest_weight_decay(
    trial: SuggestsFloats,
    *,
    low: float = 1e-4,
    high: float = 1.0,
    log: bool = True,
    name: str = "weight_decay",
) -> float:
    """Return a weight decay that the trial suggests, by default on a logarithmic scale.

    Without `log`, `low` may be 0.

    >>> class Highest:
    ...     def suggest_float(self, name, low, high, *, step=None, log=False):
    ...         return high
    >>> suggest_weight_decay(Highest(), high=0.1)
    0.1
    """
    _check_trial(trial)
    low, high = _range("weight_decay", (low, high))
    if low < 0 or (log and low == 0):
        raise InputError(f"low is {low:g}: expected above 0, or at least 0 with log=False")
    return trial.suggest_float(name, low, high, log=log)


def _check_trial(trial: object) -> None:
    if not isinstance(trial, SuggestsFloats):
        raise InputError(f"trial is {type(trial).__name__}: expected a trial of Optuna")


def _range(name: str, found: object) -> Range:
    if not isinstance(found, list | tuple) or len(found) != 2:
        raise InputError(f"the range of {name} is {found!r}: expected (low, high)")
    low, high = (finite_number(f"an end of the range of {name}", end) for end in found)
    if low > high or not math.isfinite(high - low):
        raise InputError(f"the range of {name} is ({low:g}, {high:g}): expected low, then high")
    return low, high

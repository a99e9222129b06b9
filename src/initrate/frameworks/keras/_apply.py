"""Apply and audit: the values of a rule into a Keras model, all of them or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import ml_dtypes
import numpy as np

from initrate.errors import InputError
from initrate.errors import unknown as unknown_word
from initrate.frameworks._arrays import (
    SHORT,
    Array,
    check_force,
    measure,
    new_values,
    refuse_trained,
)
from initrate.frameworks._layout import Layout
from initrate.frameworks.keras._plan import LayerTensor, Patterns, tensors_of
from initrate.measure import Moments
from initrate.rule import Audit, PlanRow, Rule, Unknown, make_audit, plan_records
from initrate.rule._choice import chosen_rule, needed_rule

Mode = Literal["draw", "rescale"]


def apply(
    model: Any,
    *,
    gamma: float | None = None,
    rule: Rule | str | None = None,
    gamma_by_role: Mapping[str, float] | None = None,
    seed: int = 0,
    mode: Mode = "draw",
    unknown: Unknown = "refuse",
    layouts: Sequence[Layout] = (),
    include: Patterns = (),
    exclude: Patterns = (),
    force: bool = False,
    waive: Sequence[str] = (),
) -> Audit:
    """Draw the weights of a built model by a rule, in place, and return what was then measured.

    Every value depends on (seed, name, place) alone. The same rule and seed again change nothing.
    With `mode="rescale"` the values that are there are multiplied to the std of the rule. A model
    that looks trained, with a norm whose gain is not constant, is refused unless `force` is given.
    Either all weights are drawn or, with an InputError, none.

    >>> import keras
    >>> model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256)])
    >>> apply(model, gamma=0.8, seed=0).ok
    True
    """
    if mode not in get_args(Mode):
        raise unknown_word("mode", mode, get_args(Mode))
    check_force(force)
    chosen = needed_rule(gamma, rule, gamma_by_role)
    tensors = tensors_of(model, layouts=layouts, include=include, exclude=exclude)
    records = [record for tensor in tensors for record in tensor.records]
    plan = plan_records(records, chosen, unknown_tensors=unknown)
    plan.raise_for_refused()
    old = [_values(tensor) for tensor in tensors]
    for tensor, values in zip(tensors, old, strict=True):
        if not force and values is not None and tensor.records[0].roles == ("norm",):
            refuse_trained(tensor.name, values)
    rows = iter(plan.rows)
    new = [
        _drawn(values, [next(rows) for _ in tensor.records], seed, mode)
        for tensor, values in zip(tensors, old, strict=True)
    ]
    for tensor, before, after in zip(tensors, old, new, strict=True):
        if after is not None and after is not before:
            tensor.variable.assign(after)
    return make_audit(plan, _measured(tensors), rule=chosen, waive=waive)


def audit(
    model: Any,
    *,
    gamma: float | None = None,
    rule: Rule | str | None = None,
    gamma_by_role: Mapping[str, float] | None = None,
    unknown: Unknown = "refuse",
    layouts: Sequence[Layout] = (),
    include: Patterns = (),
    exclude: Patterns = (),
    waive: Sequence[str] = (),
) -> Audit:
    """Return the measured std and the implied rate of every weight, and what is wrong with them.

    Without gamma and rule nothing is expected of the weights, and what needs no rule is still
    found. The model is not changed.

    >>> import keras
    >>> model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256)])
    >>> [finding.code for finding in audit(model, gamma=0.8).findings]
    ['IR101']
    """
    chosen = chosen_rule(gamma, rule, gamma_by_role)
    tensors = tensors_of(model, layouts=layouts, include=include, exclude=exclude)
    records = [record for tensor in tensors for record in tensor.records]
    plan = plan_records(records, chosen or Rule(), unknown_tensors=unknown)
    return make_audit(plan, _measured(tensors), rule=chosen, waive=waive)


def _values(tensor: LayerTensor) -> Array | None:
    """Return the values of a weight in its own type; None of a type that is not drawn."""
    found = tensor.variable.value
    if tensor.variable.dtype not in SHORT:
        return None
    # Each backend has its own kind of array, and NumPy has no bfloat16 of its own.
    if getattr(found, "is_meta", False):
        raise InputError(f"{tensor.name!r} is on the meta device: build the model on a real one")
    if hasattr(found, "detach"):
        found = found.detach().cpu()
        found = (found.float() if tensor.variable.dtype == "bfloat16" else found).numpy()
    short = ml_dtypes.bfloat16 if tensor.variable.dtype == "bfloat16" else tensor.variable.dtype
    return np.asarray(found).astype(short, copy=False)


def _drawn(old: Array | None, rows: Sequence[PlanRow], seed: int, mode: Mode) -> Array | None:
    """Return the new values of a weight, or the old ones where nothing changes."""
    if old is None or all(row.action not in ("draw", "zero") for row in rows):
        return old
    new = new_values(old, rows, seed, rescale=mode == "rescale")
    return old if np.array_equal(old, new) else new


def _measured(tensors: Sequence[LayerTensor]) -> dict[str, Moments]:
    found: dict[str, Moments] = {}
    for tensor in tensors:
        values = _values(tensor)
        if values is not None:
            found |= measure(values, tensor.records)
    return found

"""The checks, one function a case: what the rule means must be what the model then holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from initrate.errors import InputError
from initrate.rule import Plan, PlanRow, Rule, Slice, draw_window
from initrate.testing._adapter import Adapter, ConformanceError
from initrate.testing._cases import CASES, describe

Values = Mapping[str, NDArray[np.floating]]

_RULE = Rule(gamma=0.8)
_SPLIT = Rule(gamma=0.8, gamma_by_role={"qk": 0.4})
_SEED = 3
_ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "parametrized": 1e-5}
"""How far a value may lie from its draw, as a share of it; elsewhere not at all."""


def check(adapter: Adapter, case: str) -> None:
    """Put an adapter through one case; raise ConformanceError with what it does otherwise."""
    describe(case)
    model, reason = adapter.build(case), adapter.absent.get(case)
    if model is None:
        _expect(bool(reason and reason.strip()), case, "there is no model and no reason why")
        return
    _expect(not reason, case, "there is a model, and it is said to be absent")
    _CHECKS.get(case, _follows)(adapter, case, model)


def _expect(good: bool, case: str, message: str) -> None:
    if not good:
        raise ConformanceError(f"{case}: {message}")


def _rows(plan: Plan, action: str) -> list[PlanRow]:
    return [row for row in plan if row.action == action]


def part_of(tensor: NDArray[np.floating], where: Slice | None) -> NDArray[np.floating]:
    """Return a part of a tensor, flat, in the order of its own shape.

    >>> part_of(np.arange(6.0), Slice(axis=0, start=1, length=1, period=3))
    array([1., 4.])
    """
    if where is None:
        return tensor.reshape(-1)
    split = tensor.reshape(where.split(tensor.shape))
    block = np.arange(where.start, where.start + where.length)
    return split.take(block, axis=where.axis + 1).reshape(-1)


def _follows(
    adapter: Adapter, case: str, model: Any, rule: Rule = _RULE, seed: int = _SEED
) -> tuple[Any, Values]:
    """Apply, and compare every value with what the rule means it to be."""
    plan, before = adapter.plan(model, rule), adapter.values(model)
    _expect(not plan.refused, case, f"refused: {[row.name for row in plan.refused]}")
    _expect(bool(_rows(plan, "draw")), case, "the plan draws nothing")
    model, audit = adapter.apply(model, rule, seed)
    found = adapter.values(model)
    _expect(audit.ok, case, f"the audit finds {[str(f) for f in audit.findings]}")
    _expect(found.keys() == before.keys(), case, "apply changes which tensors there are")
    for row in plan:
        name, where = row.record.name, row.record.where
        _expect(name in found, case, f"values() has no {name!r}, which the plan names")
        _expect(found[name].shape == row.record.shape, case, f"{name!r} has another shape")
        _expect_row(case, row, part_of(found[name], where), part_of(before[name], where), seed)
        for alias in row.record.aliases:
            same = alias in found and np.array_equal(found[alias], found[name])
            _expect(same, case, f"{alias!r} is no longer tied to {name!r}")
    return model, found


def _expect_row(
    case: str,
    row: PlanRow,
    found: NDArray[np.floating],
    before: NDArray[np.floating],
    seed: int,
) -> None:
    """Compare the values of one row."""
    found = found.astype(np.float64)
    if row.action == "keep":
        _expect(np.array_equal(found, before), case, f"{row.name!r} is kept, and has changed")
        _expect(bool(row.reason), case, f"{row.name!r} is kept without a reason")
    elif row.action == "zero":
        _expect(not found.any(), case, f"{row.name!r} is not zero")
    else:
        drawn = draw_window(row, seed, 0, row.size).astype(np.float64)
        most = _ROUNDING.get(case, 0.0) * np.abs(drawn) + (2.0**-24 if case == "float16" else 0.0)
        _expect(
            bool((np.abs(found - drawn) <= most).all()),
            case,
            f"{row.name!r} does not hold its draw of seed {seed}",
        )


def _twice(adapter: Adapter, case: str, model: Any) -> None:
    model, first = _follows(adapter, case, model)
    model, second = _follows(adapter, case, model)
    _expect(_equal(first, second), case, "the same rule and seed again change a value")
    _, other = _follows(adapter, case, model, seed=_SEED + 1)
    for row in _rows(adapter.plan(model, _RULE), "draw"):
        name = row.record.name
        _expect(not (other[name] == first[name]).any(), case, f"{name!r} ignores the seed")


def _as_plain(adapter: Adapter, case: str, model: Any) -> None:
    _, found = _follows(adapter, case, model)
    _, plain = _follows(adapter, case, adapter.build("plain"))
    _expect(_equal(found, plain), case, "the values are not those of the plain model")


def _cast(adapter: Adapter, case: str, model: Any) -> None:
    _follows(adapter, case, model)
    if case == "float16":
        # Far below the smallest number that the type holds in full.
        _refuses(adapter, case, adapter.build(case), Rule(gamma=3.0))


def _frozen(adapter: Adapter, case: str, model: Any) -> None:
    kept = [row for row in _rows(adapter.plan(model, _RULE), "keep") if "mlp_in" in row.role]
    _expect(len(kept) == 1, case, "the frozen map is not kept")
    _follows(adapter, case, model)


def _meta(adapter: Adapter, case: str, model: Any) -> None:
    found, plain = adapter.plan(model, _RULE), adapter.plan(adapter.build("plain"), _RULE)
    _expect(found == plain, case, "the plan is not that of the plain model")
    _raises(adapter, case, model, _RULE)


def _tied(adapter: Adapter, case: str, model: Any) -> None:
    rows = _rows(adapter.plan(model, _RULE), "draw")
    _expect(len(rows) == 1, case, f"{len(rows)} rows are drawn: expected one")
    _expect(bool(rows[0].record.aliases), case, "the row does not say its other name")
    _expect(rows[0].role == "token_embedding", case, f"the role is {rows[0].role}")
    _follows(adapter, case, model)


def _fused(adapter: Adapter, case: str, model: Any) -> None:
    rows = {row.role: row for row in _rows(adapter.plan(model, _SPLIT), "draw")}
    for role, gamma in (("query", 0.4), ("key", 0.4), ("value", 0.8)):
        _expect(role in rows, case, f"no part is the {role}")
        right = (rows[role].d_in, rows[role].std) == (32, 32.0**-gamma)
        _expect(right, case, f"the {role} has d_in {rows[role].d_in}, std {rows[role].std}")
    _expect(rows["query"].record.name == rows["value"].record.name, case, "they are not fused")
    _follows(adapter, case, model, rule=_SPLIT)


def _expert(adapter: Adapter, case: str, model: Any) -> None:
    rows = _rows(adapter.plan(model, _RULE), "draw")
    _expect(
        any(row.d_in == 32 and row.size == 3 * 32 * 64 for row in rows),
        case,
        f"d_in is {[row.d_in for row in rows]}: expected that of one expert, 32",
    )
    _follows(adapter, case, model)


def _refused(adapter: Adapter, case: str, model: Any) -> None:
    _refuses(adapter, case, model, _RULE)


def _zero_size(adapter: Adapter, case: str, model: Any) -> None:
    empty = [row for row in adapter.plan(model, _RULE) if not row.size]
    _expect(bool(empty), case, "the plan leaves out the tensor without values")
    _follows(adapter, case, model)


def _refuses(adapter: Adapter, case: str, model: Any, rule: Rule) -> None:
    """Expect a refusal in one line that changes nothing."""
    before = adapter.values(model)
    _raises(adapter, case, model, rule)
    _expect(_equal(adapter.values(model), before), case, "what is refused has changed a value")


def _raises(adapter: Adapter, case: str, model: Any, rule: Rule) -> None:
    try:
        adapter.apply(model, rule, _SEED)
    except InputError as error:
        _expect("\n" not in str(error), case, "the refusal is not one line")
        return
    raise ConformanceError(f"{case}: apply takes what it cannot write: expected an InputError")


def _equal(first: Values, second: Values) -> bool:
    return first.keys() == second.keys() and all(
        np.array_equal(first[name], second[name]) for name in first
    )


_CHECKS: dict[str, Callable[[Adapter, str, Any], object]] = {
    "twice": _twice,
    "reordered": _as_plain,
    "sharded": _as_plain,
    "float16": _cast,
    "bfloat16": _cast,
    "frozen": _frozen,
    "meta": _meta,
    "tied": _tied,
    "fused": _fused,
    "expert": _expert,
    "quantized": _refused,
    "shared_views": _refused,
    "zero_size": _zero_size,
}
assert _CHECKS.keys() <= CASES.keys()

"""The checks of an audit, one function a code."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from initrate.measure import largest_expected, std_interval
from initrate.rule._audit import AuditRow, Check
from initrate.rule._finding import Finding
from initrate.rule._roles import EMBEDDING_ROLES, WEIGHT_ROLES
from initrate.rule._rule import Rule
from initrate.rule._table import pattern_of, span

Rows = tuple[AuditRow, ...]
_DIFFERENT_RATE = 0.3
_TEN_EPS = 10
_FEW = 8
"""Values of 16 bits or less: so few may be equal by chance."""


def _grouped(code: str, found: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Put tensors with the same thing to say into one finding."""
    names: dict[str, list[str]] = {}
    for name, message in found:
        names.setdefault(message, []).append(name)
    for message, those in names.items():
        yield Finding(code, tuple(those), message)


def _roles(row: AuditRow) -> tuple[str, ...]:
    return row.plan.record.roles


def _is_weight(row: AuditRow) -> bool:
    return bool(_roles(row)) and set(_roles(row)) <= set(WEIGHT_ROLES)


def _trained(rule: Rule | None, rows: Rows) -> bool:
    """Return whether no rule is given and a norm is not constant: what holds at a start is over."""
    return rule is None and any(row.moved for row in rows)


def _uses_fan_out(row: AuditRow, rule: Rule) -> bool:
    """Return whether the measured std is what the rule gives for the number of outputs."""
    record, planned = row.plan.record, row.plan
    if planned.std is None or record.d_out is None or record.d_out == planned.d_in:
        return False
    draw = rule.draw(record.roles[0])
    assert planned.d_in is not None
    right, wrong = draw.std_at(d_in=planned.d_in), draw.std_at(d_in=record.d_out)
    if not right or not wrong or right == wrong:
        return False
    low, high = std_interval(
        planned.std * wrong / right, row.measured.size, uniform=planned.uniform
    )
    return low * 0.995 <= row.std <= high * 1.005


def no_effect(rule: Rule | None, rows: Rows) -> Iterator[Finding]:
    """IR101 and IR102: the measured std is not the rule's."""
    if rule is None:
        return
    off = [row for row in rows if row.as_planned is False and row.measured.finite]
    by_outputs = _by_outputs(rule, off)
    groups: dict[tuple[str, str, str], list[AuditRow]] = {}
    for row in off:
        gives, record = f"the rule gives {row.plan.std:.4g}", row.plan.record
        if row.name in by_outputs:
            gives = f"that of {record.d_out} inputs; it has {row.plan.d_in}: {gives}"
            groups.setdefault(("IR102", row.plan.role, gives), []).append(row)
        else:
            groups.setdefault(("IR101", row.plan.role, gives), []).append(row)
    for (code, _, gives), found in sorted(groups.items(), key=lambda group: group[0][0]):
        joined = " is " if code == "IR102" else ", "
        measured = f"measured std {span([row.std for row in found])}"
        yield Finding(code, tuple(row.name for row in found), f"{measured}{joined}{gives}")


def _by_outputs(rule: Rule, off: Sequence[AuditRow]) -> set[str]:
    """Return the names of the tensors whose std follows from their outputs.

    One kind of map may have that std by chance: 256^-0.6 is 64^-0.8. So most kinds of maps that
    are off must have it, a kind being a number of inputs and one of outputs.
    """
    kinds = {
        (row.plan.d_in, row.plan.record.d_out)
        for row in off
        if row.plan.record.d_out is not None and row.plan.record.d_out != row.plan.d_in
    }
    found = [row for row in off if _uses_fan_out(row, rule)]
    fitting = {(row.plan.d_in, row.plan.record.d_out) for row in found}
    return {row.name for row in found} if 2 * len(fitting) > len(kinds) else set()


def copies(rule: Rule | None, rows: Rows) -> Iterator[Finding]:
    """IR103: untied tensors whose values are equal to the last digit."""
    same: dict[object, list[str]] = {}
    for row in rows:
        # What is kept for a reason of its own may well be the same in every layer.
        of_one_draw = not row.plan.record.keep and (not _roles(row) or _is_weight(row))
        varied = row.measured.finite and not row.measured.constant
        if of_one_draw and varied and row.measured.size >= _FEW:
            same.setdefault((row.plan.shape, row.measured), []).append(row.name)
    for names in same.values():
        if len(names) > 1:
            yield Finding("IR103", tuple(names), "equal values; give each a draw of its own")


def outliers(rule: Rule | None, rows: Rows) -> Iterator[Finding]:
    """IR104: values beyond what the largest of so many draws may be."""
    if _trained(rule, rows):
        return
    for row in rows:
        if not row.measured.finite or row.plan.record.keep or not _is_weight(row):
            continue
        # A value that is far out raises the measured std too: the rule's is the better yardstick.
        std = row.plan.std if row.plan.std and row.as_planned else row.std
        most = math.sqrt(3) * 1.01 if row.plan.uniform else largest_expected(row.measured.size)
        if std and not row.measured.constant and row.measured.largest > most * std:
            times = row.measured.largest / std
            yield Finding(
                "IR104", (row.name,), f"the largest value is {times:.1f} std; expected {most:.1f}"
            )


def swamping_biases(rule: Rule | None, rows: Rows) -> Iterator[Finding]:
    """IR105: a bias that is surely larger than the weights it is added to."""
    if _trained(rule, rows):
        return
    weights: dict[str, list[float]] = {}
    for row in rows:
        if _is_weight(row) and row.measured.finite:
            for name in {row.name, row.plan.record.name}:
                weights.setdefault(name, []).append(row.std)
    groups: dict[str, list[tuple[AuditRow, float]]] = {}
    for row in rows:
        # A bias that is as the rule means it is meant; one that is constant is no draw.
        if _roles(row) != ("bias",) or row.as_planned or not row.measured.finite:
            continue
        beside = weights.get(row.plan.record.of) or weights.get(_weight_beside(row))
        if not beside or row.measured.constant or row.plan.record.keep:
            continue
        if row.std > std_interval(max(beside), row.measured.size)[1] * 1.005:
            groups.setdefault(pattern_of(row.name), []).append((row, max(beside)))
    for found in groups.values():
        bias, weight = span([row.std for row, _ in found]), span([w for _, w in found])
        yield Finding(
            "IR105",
            tuple(row.name for row, _ in found),
            f"bias std {bias} beside weights of std {weight}; start biases at zero",
        )


def _weight_beside(row: AuditRow) -> str:
    """Return the name of the weight that stands beside a bias, fused ones included."""
    stem, dot, last = row.plan.record.name.rpartition(".")
    return stem + dot + last.replace("bias", "weight")


def embedding_size(rule: Rule | None, rows: Rows) -> Iterator[Finding]:
    """IR106: the rate of the embeddings is far from that of the other weights."""
    if _trained(rule, rows):
        return
    rates: dict[bool, list[float]] = {True: [], False: []}
    names: list[str] = []
    for row in rows:
        if row.gamma is None or row.plan.record.keep or not _is_weight(row):
            continue
        if _roles(row) == ("token_embedding",):
            if row.as_planned is not True and (row.plan.record.rows or 1) > 1:
                rates[True].append(row.gamma)
                names.append(row.name)
        elif not set(_roles(row)) & set(EMBEDDING_ROLES):
            rates[False].append(row.gamma)
    if rates[True] and rates[False]:
        # Adding zero makes -0.00 into 0.00.
        table, dense = (round(median(rates[key]), 2) + 0.0 for key in (True, False))
        if abs(table - dense) > _DIFFERENT_RATE:
            yield Finding(
                "IR106",
                tuple(names),
                f"γ {table:.2f}, where the other weights have {dense:.2f}: give embeddings the "
                "same rate, or take one of their own in gamma_by_role",
            )


def biting_eps(rule: Rule | None, rows: Rows) -> Iterator[Finding]:
    """IR107: the variance of the embeddings is under ten times the eps of the first norm.

    Only tables of the width of the norm that stand before it count, and none where a convolution
    stands before it: what a norm then sees is not known from the tables.
    """
    if _trained(rule, rows):
        return
    first = next((k for k, row in enumerate(rows) if _eps(row) is not None), None)
    if first is None:
        return
    before, norm, eps = rows[:first], rows[first], _eps(rows[first])
    assert eps is not None
    if any(_roles(row) == ("convolution",) for row in before):
        return
    width = norm.plan.shape[-1]
    tables = [
        row
        for row in before
        if len(_roles(row)) == 1
        and _roles(row)[0] in EMBEDDING_ROLES
        and row.plan.shape[-1:] == (width,)
        and row.measured.finite
        and row.measured.size
    ]
    # Without a table of tokens, what enters the model does not come from tables.
    if not any(
        _roles(row) == ("token_embedding",) and (row.plan.record.rows or 1) > 1 for row in tables
    ):
        return
    variance = sum((row.std * row.multiplier) ** 2 for row in tables)
    if 0 < variance < _TEN_EPS * eps:
        gain = math.sqrt(variance / (variance + eps))
        yield Finding(
            "IR107",
            (norm.name,),
            f"eps {eps:g} beside an embedding variance of {variance:.3g}: the first norm gives "
            f"{gain:.3f} in place of 1; take a smaller eps",
        )


def _eps(row: AuditRow) -> float | None:
    return row.plan.record.eps if _roles(row) == ("norm",) and row.plan.shape else None


def not_covered(rule: Rule | None, rows: Rows) -> Iterator[Finding]:
    """IR111: what was refused, or kept because it is unknown."""
    if rule is None:
        return
    yield from _grouped(
        "IR111",
        (
            (row.name, row.plan.reason)
            for row in rows
            if row.plan.action == "refuse" or row.plan.reason.startswith("unknown: ")
        ),
    )


def not_finite(rule: Rule | None, rows: Rows) -> Iterator[Finding]:
    """IR112: infinite values, or values that are no numbers."""
    names = tuple(row.name for row in rows if row.measured.size and not row.measured.finite)
    if names:
        yield Finding("IR112", names, "values that are not finite")


CHECKS: tuple[Check, ...] = (
    no_effect,
    copies,
    outliers,
    swamping_biases,
    embedding_size,
    biting_eps,
    not_covered,
    not_finite,
)

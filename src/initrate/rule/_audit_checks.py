"""The checks of an audit, one function a code."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from statistics import median

from initrate.measure import largest_expected, std_interval
from initrate.rule._audit import AuditRow, Check
from initrate.rule._finding import Finding
from initrate.rule._roles import EMBEDDING_ROLES, WEIGHT_ROLES
from initrate.rule._rule import Rule

Rows = tuple[AuditRow, ...]
_DIFFERENT_RATE = 0.3
_TEN_EPS = 10


def _grouped(code: str, found: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Put tensors with the same thing to say into one finding."""
    names: dict[str, list[str]] = {}
    for name, message in found:
        names.setdefault(message, []).append(name)
    for message, those in names.items():
        yield Finding(code, tuple(those), message)


def _uses_fan_out(row: AuditRow, rule: Rule) -> bool:
    """Say whether the measured std is what the rule gives for the number of outputs."""
    record, planned = row.plan.record, row.plan
    if planned.std is None or record.d_out is None or record.d_out == planned.d_in:
        return False
    draw = rule.draw(record.roles[0])
    assert planned.d_in is not None
    right, wrong = draw.std_at(d_in=planned.d_in), draw.std_at(d_in=record.d_out)
    if not right or not wrong:
        return False
    low, high = std_interval(planned.std * wrong / right, planned.size, uniform=planned.uniform)
    return low * 0.995 <= row.std <= high * 1.005


def no_effect(rule: Rule | None, rows: Rows) -> Iterator[Finding]:
    """IR101 and IR102: the measured std is not the rule's."""
    if rule is None:
        return
    off = [row for row in rows if row.as_planned is False and row.measured.finite]
    by_output = {row.name for row in off if _uses_fan_out(row, rule)}
    yield from _grouped(
        "IR101",
        (
            (row.name, f"measured std {row.std:.4g}, the rule gives {row.plan.std:.4g}")
            for row in off
            if row.name not in by_output
        ),
    )
    yield from _grouped(
        "IR102",
        (
            (
                row.name,
                f"measured std {row.std:.4g} is that of {row.plan.record.d_out} inputs, and it has "
                f"{row.plan.d_in}, which gives {row.plan.std:.4g}",
            )
            for row in off
            if row.name in by_output
        ),
    )


def copies(rule: Rule | None, rows: Rows) -> Iterator[Finding]:
    """IR103: untied tensors whose values are equal to the last digit."""
    same: dict[object, list[str]] = {}
    for row in rows:
        if not row.measured.constant and row.measured.finite and row.plan.size > 1:
            same.setdefault((row.plan.shape, row.measured), []).append(row.name)
    for names in same.values():
        if len(names) > 1:
            yield Finding("IR103", tuple(names), "equal values; give each a draw of its own")


def outliers(rule: Rule | None, rows: Rows) -> Iterator[Finding]:
    """IR104: values beyond what the largest of so many draws may be."""
    for row in rows:
        if not row.measured.finite or row.plan.record.roles in ((), ("norm",), ("structured",)):
            continue
        # A value that is far out raises the measured std too: the rule's is the better yardstick.
        std = row.plan.std if row.plan.std and row.as_planned else row.std
        most = math.sqrt(3) * 1.01 if row.plan.uniform else largest_expected(row.plan.size)
        if std and not row.measured.constant and row.measured.largest > most * std:
            times = row.measured.largest / std
            yield Finding(
                "IR104", (row.name,), f"the largest value is {times:.1f} std; expected {most:.1f}"
            )


def swamping_biases(rule: Rule | None, rows: Rows) -> Iterator[Finding]:
    """IR105: a bias whose std is above that of the weights it is added to."""
    weights = {row.name: row for row in rows}
    yield from _grouped(
        "IR105",
        (
            (row.name, f"bias std {row.std:.4g} beside weights of std {weight.std:.4g}")
            for row in rows
            if row.plan.record.of
            and (weight := weights.get(row.plan.record.of)) is not None
            and row.measured.finite
            and weight.measured.finite
            and row.std > weight.std
        ),
    )


def embedding_size(rule: Rule | None, rows: Rows) -> Iterator[Finding]:
    """IR106: the rate of the embeddings is far from that of the other weights."""
    rates: dict[bool, list[float]] = {True: [], False: []}
    names: list[str] = []
    for row in rows:
        roles = row.plan.record.roles
        if row.gamma is None or not roles or not set(roles) <= set(WEIGHT_ROLES):
            continue
        if roles == ("token_embedding",) and row.as_planned is not True:
            rates[True].append(row.gamma)
            names.append(row.name)
        elif roles[0] not in EMBEDDING_ROLES:
            rates[False].append(row.gamma)
    if rates[True] and rates[False]:
        table, dense = median(rates[True]), median(rates[False])
        if abs(table - dense) > _DIFFERENT_RATE:
            yield Finding(
                "IR106", tuple(names), f"γ {table:.2f}, where the other weights have {dense:.2f}"
            )


def biting_eps(rule: Rule | None, rows: Rows) -> Iterator[Finding]:
    """IR107: the variance of the embeddings is under ten times the eps of the first norm."""
    variances: dict[str, float] = {}
    for row in rows:
        roles = row.plan.record.roles
        if len(roles) == 1 and roles[0] in EMBEDDING_ROLES and row.measured.finite:
            variances.setdefault(roles[0], row.std**2)
        eps = row.plan.record.eps
        if roles == ("norm",) and eps is not None and variances:
            v = sum(variances.values())
            if 0 < v < _TEN_EPS * eps:
                yield Finding(
                    "IR107",
                    (row.name,),
                    f"eps {eps:g} beside an embedding variance of {v:.3g}: the first norm passes "
                    f"on {math.sqrt(v / (v + eps)):.3f} of it; take a smaller eps",
                )
            return


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
    names = tuple(row.name for row in rows if row.plan.size and not row.measured.finite)
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

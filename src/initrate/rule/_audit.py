"""The audit: a plan beside what was measured, and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from initrate.errors import FindingError, unknown
from initrate.measure import Moments, std_interval
from initrate.rule._finding import CODES, Finding
from initrate.rule._gamma import gamma_from_std
from initrate.rule._plan import Plan, PlanRow
from initrate.rule._rule import Rule
from initrate.rule._table import html_table


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One tensor, or one part of a fused one: what the rule means, and what was measured."""

    plan: PlanRow
    measured: Moments

    @property
    def name(self) -> str:
        """The canonical name, with the part behind `#`."""
        return self.plan.name

    @property
    def std(self) -> float:
        """The measured std."""
        return self.measured.std

    @property
    def gamma(self) -> float | None:
        """The rate that the measured std implies: -ln(std) / ln(d_in); None where there is none."""
        d_in = self.plan.d_in
        if d_in is None or d_in < 2 or not 0 < self.std < math.inf:
            return None
        return gamma_from_std(self.std, d_in)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the measured std lies if the rule was followed; None where it says nothing."""
        if self.plan.std is None:
            return None
        return std_interval(self.plan.std, self.plan.size, uniform=self.plan.uniform)

    @property
    def as_planned(self) -> bool | None:
        """Whether the measured std is the rule's, within its sampling error."""
        interval = self.interval
        if interval is None:
            return None
        # Half a percent is for weights that were rounded to 16 bits, or drawn truncated by a hair.
        return interval[0] * 0.995 <= self.std <= interval[1] * 1.005

    def to_dict(self) -> dict[str, object]:
        """Return the row as plain values."""
        interval = self.interval
        return {
            **self.plan.to_dict(),
            "measured_std": self.std if self.measured.finite else None,
            "gamma": self.gamma,
            "low": None if interval is None else interval[0],
            "high": None if interval is None else interval[1],
            "as_planned": self.as_planned,
        }


@dataclass(frozen=True, slots=True)
class Audit:
    """What was measured of a model, and what is wrong with it.

    `ok` is whether there is no finding. `waived` are the findings whose code was waived.
    """

    rule: Rule | None
    """None where the weights were measured against no rule."""
    rows: tuple[AuditRow, ...]
    findings: tuple[Finding, ...]
    waived: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def raise_for_findings(self) -> None:
        """Raise FindingError with all findings, one after another, if there are any."""
        if self.findings:
            raise FindingError("; ".join(str(finding) for finding in self.findings))

    def gamma_by_role(self) -> dict[str, float]:
        """Return the median rate that the weights of each role imply."""
        rates: dict[str, list[float]] = {}
        for row in self.rows:
            if row.gamma is not None and row.plan.record.roles and row.plan.role != "bias":
                rates.setdefault(row.plan.role, []).append(row.gamma)
        return {role: sorted(found)[len(found) // 2] for role, found in rates.items()}

    def to_dict(self) -> dict[str, object]:
        """Return the audit as plain values."""
        return {
            "rule": None if self.rule is None else self.rule.to_dict(),
            "ok": self.ok,
            "rows": [row.to_dict() for row in self.rows],
            "findings": [finding.to_dict() for finding in self.findings],
            "waived": [finding.to_dict() for finding in self.waived],
        }

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the head and the rows of the table that people read."""
        head = ("name", "role", "d_in", "std of the rule", "measured std", "γ", "")
        return head, [
            (
                row.name,
                row.plan.role,
                "" if row.plan.d_in is None else str(row.plan.d_in),
                "" if row.plan.std is None else f"{row.plan.std:.4g}",
                f"{row.std:.4g}",
                "" if row.gamma is None else f"{row.gamma:.3f}",
                {None: row.plan.reason or row.plan.action, True: "as planned", False: "differs"}[
                    row.as_planned
                ],
            )
            for row in self.rows
        ]

    def _repr_html_(self) -> str:
        return html_table(*self.table(), notes=[str(finding) for finding in self.findings])


Check = Callable[[Rule | None, tuple[AuditRow, ...]], Iterable[Finding]]


def make_audit(
    plan: Plan,
    measured: Mapping[str, Moments],
    *,
    rule: Rule | None,
    further: Iterable[Finding] = (),
    waive: Iterable[str] = (),
) -> Audit:
    """Return the audit of a plan and of the moments measured of its rows, by their names.

    >>> from initrate.rule import WeightRecord, plan_records
    >>> from initrate.measure import moments
    >>> import numpy as np
    >>> record = WeightRecord("fc.weight", (8, 64), ("mlp_in",), d_in=64)
    >>> plan = plan_records([record], Rule(gamma=0.5))
    >>> audit = make_audit(plan, {"fc.weight": moments(np.full(512, 0.5))}, rule=plan.rule)
    >>> [finding.code for finding in audit.findings]
    ['IR101']
    """
    # The checks read rows, so their module stands above this one's classes.
    from initrate.rule._audit_checks import CHECKS

    waive = tuple(waive)
    for code in waive:
        if code not in CODES:
            raise unknown("finding to waive", code, CODES)
    rows = tuple(AuditRow(row, measured[row.name]) for row in plan if row.name in measured)
    found = [finding for check in CHECKS for finding in check(rule, rows)]
    found = [*found, *further]
    return Audit(
        rule,
        rows,
        tuple(finding for finding in found if finding.code not in waive),
        tuple(finding for finding in found if finding.code in waive),
    )

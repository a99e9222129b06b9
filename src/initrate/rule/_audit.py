"""The audit: a plan beside what was measured, and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from initrate.errors import FindingError, InputError, unknown
from initrate.measure import Moments, std_interval
from initrate.rule._finding import CODES, Finding
from initrate.rule._gamma import gamma_from_std
from initrate.rule._plan import Plan, PlanRow
from initrate.rule._rule import Rule
from initrate.rule._table import gathered, html_table, plain_table, span


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One tensor, or one part of a fused one: what the rule means, and what was measured."""

    plan: PlanRow
    measured: Moments
    multiplier: float = 1.0
    """Of a table: what its rows are multiplied by when they are looked up; nan: not known."""

    @property
    def name(self) -> str:
        """The canonical name, with the part behind `#`."""
        return self.plan.name

    @property
    def role(self) -> str:
        """The role, as people read it."""
        return self.plan.role

    @property
    def aliases(self) -> tuple[str, ...]:
        """The other names of a tied tensor."""
        return self.plan.aliases

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
    def moved(self) -> bool:
        """Whether it is a norm that is not as it was made, constant: the model was trained."""
        found = self.measured
        is_norm = self.plan.record.roles == ("norm",)
        return is_norm and found.size > 0 and found.finite and not found.constant

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the measured std lies if the rule was followed; None where it says nothing."""
        # Of a tensor that is spread over processes, the values that lie here were measured.
        if self.plan.std is None or not self.measured.size:
            return None
        std, size, n_rows = self.plan.std, self.measured.size, self.plan.shape[:1]
        if self.plan.record.padding is not None:
            # The padding row is zero, and was measured with the others.
            std, size = std * math.sqrt(1 - 1 / n_rows[0]), size - size // n_rows[0]
        return std_interval(std, size, uniform=self.plan.uniform)

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
            "measured_std": self.std if self.measured.finite and self.measured.size else None,
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
    outdated: Rule | None = None
    """The rule that is written down with the model, where the model looks trained since."""

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
            "outdated_rule": None if self.outdated is None else self.outdated.to_dict(),
            "ok": self.ok,
            "rows": [row.to_dict() for row in self.rows],
            "findings": [finding.to_dict() for finding in self.findings],
            "waived": [finding.to_dict() for finding in self.waived],
        }

    def table(self, *, whole: bool = True) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the head and the rows of the table that people read.

        With `whole=False`, tensors that differ in the number of their layer alone share a row.
        """
        head = ("name", "role", "d_in", "rule's std", "measured std", "γ", "outcome")
        named = [(row.name, [row]) for row in self.rows]
        if not whole:
            named = list(gathered((row.name, _equal(row), row) for row in self.rows))
        return head, [
            (
                name if len(rows) == 1 else f"{name} ×{len(rows)}",
                rows[0].plan.role,
                "" if rows[0].plan.d_in is None else str(rows[0].plan.d_in),
                "" if rows[0].plan.std is None else f"{rows[0].plan.std:.4g}",
                span([row.std for row in rows]),
                span([row.gamma for row in rows if row.gamma is not None], ".3f"),
                self._verdict(rows[0]),
            )
            for name, rows in named
        ]

    def _verdict(self, row: AuditRow) -> str:
        if row.as_planned is None:
            action = "" if self.rule is None else row.plan.action
            return row.plan.told or action
        return "as planned" if row.as_planned else "differs"

    def summary(self) -> str:
        """Return one line: how many tensors follow the rule, and how much was found.

        >>> Audit(None, (), ()).summary()
        'no rule; 0 tensors measured; no findings'
        """
        n_found = len(self.findings)
        found = f"{n_found} finding{'s' if n_found != 1 else ''}" if n_found else "no findings"
        waived = f", {len(self.waived)} waived" if self.waived else ""
        if self.rule is None:
            rule = "no rule"
            if self.outdated is not None:
                rule = f"rule {_named(self.outdated)} is written down and not compared, for the "
                rule += "model looks trained since"
            return f"{rule}; {len(self.rows)} tensors measured; {found}{waived}"
        judged = [row for row in self.rows if row.as_planned is not None]
        good = sum(row.as_planned is True for row in judged)
        kept = len(self.rows) - len(judged)
        return (
            f"rule {_named(self.rule)}; {good} of {len(judged)} tensors as planned, "
            f"{kept} kept or not covered; {found}{waived}"
        )

    def __str__(self) -> str:
        below = "\n".join([*map(str, self.findings), self.summary()])
        return plain_table(*self.table(whole=False), below=below)

    def _repr_html_(self) -> str:
        named = {name for finding in self.findings for name in finding.names}
        marked = [row.name in named for row in self.rows]
        notes = [str(finding) for finding in self.findings]
        return html_table(*self.table(), title=self.summary(), marked=marked, notes=notes)


def _equal(row: AuditRow) -> object:
    """Return what rows have in common that may share a line of a table."""
    plan = row.plan
    return plan.role, plan.shape, plan.d_in, plan.std, plan.action, plan.reason, row.as_planned


Check = Callable[[Rule | None, tuple[AuditRow, ...]], Iterable[Finding]]


def make_audit(
    plan: Plan,
    measured: Mapping[str, Moments],
    *,
    rule: Rule | None,
    written: bool = False,
    multipliers: Mapping[str, float] | None = None,
    further: Iterable[Finding] = (),
    waive: Iterable[str] = (),
) -> Audit:
    """Return the audit of a plan and of the moments measured of its rows, by their names.

    With the rule None nothing is expected of the weights: the plan tells what they are, no more.
    A rule that was only `written` down with the model is of its start: of a model that looks
    trained since, nothing is expected.
    `multipliers` has, by their names, the tables whose rows are multiplied when they are looked up.

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

    if not isinstance(waive, Iterable):
        raise InputError(f"waive is {waive!r}: expected codes, such as ['IR107']")
    waive = (waive,) if isinstance(waive, str) else tuple(waive)
    for code in waive:
        if not isinstance(code, str) or code not in CODES:
            raise unknown("finding to waive", code, CODES)
    times = multipliers or {}
    rows = tuple(
        AuditRow(row, measured[row.name], times.get(row.name, 1.0))
        for row in plan
        if row.name in measured
    )
    outdated = rule if written and any(row.moved for row in rows) else None
    if outdated is not None:
        rule = None
    if rule is None:
        rows = tuple(replace(row, plan=_expecting_nothing(row.plan)) for row in rows)
    found = [finding for check in CHECKS for finding in check(rule, rows)]
    found = [*found, *further]
    return Audit(
        rule,
        rows,
        tuple(finding for finding in found if finding.code not in waive),
        tuple(finding for finding in found if finding.code in waive),
        outdated,
    )


def _named(rule: Rule) -> str:
    return rule.name if rule.gamma is None else f"{rule.name}, γ {rule.gamma:g}"


def _expecting_nothing(row: PlanRow) -> PlanRow:
    reason = row.record.keep or row.record.refuse
    return replace(row, action="keep", std=None, factor=None, uniform=False, reason=reason)

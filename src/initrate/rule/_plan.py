"""The plan: for every tensor of a model, what a rule does with it and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from initrate.errors import InputError, unknown
from initrate.rule._draws import Draw, Keep, Uniform, Zero
from initrate.rule._record import WeightRecord
from initrate.rule._roles import EMBEDDING_ROLES, KEPT_ROLES, RESIDUAL_ROLES, group_of
from initrate.rule._rule import Rule
from initrate.rule._table import gathered, html_table, plain_table, shape_of, shape_text
from initrate.rule._tensor import LARGEST, SMALLEST

Action = Literal["draw", "zero", "keep", "refuse"]
Unknown = Literal["refuse", "keep"]


@dataclass(frozen=True, slots=True)
class PlanRow:
    """What the rule does with one tensor, or with one part of a fused tensor."""

    record: WeightRecord
    action: Action
    d_in: int | None
    """What the rule takes for the number of inputs."""
    std: float | None
    """What the rule means the std to be; None where the values are kept or not known."""
    factor: float | None
    """What unit normals, or numbers uniform between -1 and 1, are multiplied by."""
    uniform: bool
    reason: str

    @property
    def name(self) -> str:
        """The canonical name, with the part behind `#`."""
        return self.record.key

    @property
    def role(self) -> str:
        """The role, as people read it."""
        return self.record.role

    @property
    def aliases(self) -> tuple[str, ...]:
        """The other names of a tied tensor."""
        return self.record.aliases

    @property
    def told(self) -> str:
        """The reason, or under which other names the tensor goes."""
        tied = f"tied: {', '.join(self.aliases)}" if self.aliases else ""
        return self.reason or tied

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor, or of its part."""
        return self.record.part_shape

    @property
    def size(self) -> int:
        """The number of values."""
        return self.record.size

    def to_dict(self) -> dict[str, object]:
        """Return the row as plain values."""
        return {
            "name": self.name,
            "shape": shape_of(self.record),
            "role": self.role,
            "d_in": self.d_in,
            "std": self.std,
            "action": self.action,
            "reason": self.reason,
            "aliases": list(self.record.aliases),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """A row for every tensor; nothing of a model is left out.

    >>> record = WeightRecord("fc.weight", (8, 64), ("mlp_in",), d_in=64, d_model=64)
    >>> plan_records([record], Rule(gamma=0.5)).rows[0].std
    0.125
    """

    rule: Rule
    rows: tuple[PlanRow, ...]

    def __iter__(self) -> Iterator[PlanRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def refused(self) -> tuple[PlanRow, ...]:
        """The rows that the rule cannot be applied to."""
        return tuple(row for row in self.rows if row.action == "refuse")

    def count(self, action: Action) -> tuple[int, int]:
        """Return how many rows, and how many values, have this action."""
        sizes = [row.size for row in self.rows if row.action == action]
        return len(sizes), sum(sizes)

    def raise_for_refused(self) -> None:
        """Raise the error that names what was refused, and why."""
        refused = self.refused
        if refused:
            first = refused[0]
            more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
            raise InputError(
                f"{len(refused)} of {len(self.rows)} tensors are refused: {first.name!r} "
                f"{first.reason}{more}; say what they are by layouts=[...], or leave them as "
                "they are by unknown='keep'"
            )

    def to_dict(self) -> dict[str, object]:
        """Return the plan as plain values."""
        return {"rule": self.rule.to_dict(), "rows": [row.to_dict() for row in self.rows]}

    def table(self, *, whole: bool = True) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the head and the rows of the table that people read.

        With `whole=False`, tensors that differ in the number of their layer alone share a row.
        """
        head = ("name", "shape", "role", "d_in", "std", "action", "reason")
        texts = [
            (
                shape_text(row.record),
                row.role,
                "" if row.d_in is None else str(row.d_in),
                "" if row.std is None else f"{row.std:.4g}",
                row.action,
                row.told,
            )
            for row in self.rows
        ]
        names = [row.name for row in self.rows]
        if whole:
            return head, [(name, *text) for name, text in zip(names, texts, strict=True)]
        groups = gathered(zip(names, texts, texts, strict=True))
        return head, [
            (name if len(rows) == 1 else f"{name} ×{len(rows)}", *rows[0]) for name, rows in groups
        ]

    def summary(self) -> str:
        """Return one line: how many tensors and values are drawn, set to zero, kept, refused.

        >>> plan_records([], Rule(gamma=0.5)).summary()
        'rule formula, γ 0.5; no tensors'
        """
        words = {"draw": "drawn", "zero": "zero", "keep": "kept", "refuse": "refused"}
        counts = [
            f"{n:,} {words[action]} ({size:,} values)"
            for action in get_args(Action)
            for n, size in [self.count(action)]
            if n
        ]
        gamma = "" if self.rule.gamma is None else f", γ {self.rule.gamma:g}"
        return f"rule {self.rule.name}{gamma}; {', '.join(counts) or 'no tensors'}"

    def __str__(self) -> str:
        return plain_table(*self.table(whole=False), below=self.summary())

    def _repr_html_(self) -> str:
        marked = [row.action == "refuse" for row in self.rows]
        return html_table(*self.table(), title=self.summary(), marked=marked)


def plan_records(
    records: Iterable[WeightRecord], rule: Rule, *, unknown_tensors: Unknown = "refuse"
) -> Plan:
    """Return the plan of a model: what the rule does with each of its tensors.

    A tensor with several possible roles is drawn only where the rule treats all of them alike;
    else it is refused, or kept with `unknown_tensors="keep"`.

    >>> fused = WeightRecord("qkv.weight", (192, 64), ("query", "key", "value"), d_in=64)
    >>> plan_records([fused], Rule(gamma=0.5)).rows[0].action
    'draw'
    >>> plan_records([fused], Rule(gamma=0.5, gamma_by_role={"vo": 0.8})).rows[0].reason
    'may be query, key or value, which the rule draws apart'
    """
    if not isinstance(unknown_tensors, str) or unknown_tensors not in get_args(Unknown):
        raise unknown("way with unknown tensors", unknown_tensors, get_args(Unknown))
    rows = tuple(_row(record, rule) for record in records)
    if unknown_tensors == "keep":
        rows = tuple(_kept(row) if row.action == "refuse" else row for row in rows)
    return Plan(rule, rows)


def _kept(row: PlanRow) -> PlanRow:
    return PlanRow(row.record, "keep", row.d_in, None, None, False, f"unknown: {row.reason}")


def _row(record: WeightRecord, rule: Rule) -> PlanRow:
    """Return what the rule does with one tensor."""

    def still(action: Action, reason: str) -> PlanRow:
        std = 0.0 if action == "zero" else None
        return PlanRow(record, action, record.d_in, std, None, False, reason)

    if record.refuse:
        return still("refuse", record.refuse)
    if record.keep or record.size == 0:
        return still("keep", record.keep or "has no values")
    if record.zero:
        return still("zero", record.zero)
    if not record.roles:
        return still("refuse", "has a role that is not known")
    readings = {_reading(record, rule, role) for role in record.roles}
    if len(readings) > 1:
        words = " or ".join((", ".join(record.roles[:-1]), record.roles[-1]))
        return still("refuse", f"may be {words}, which the rule draws apart")
    draw, d_in, divisor, trouble = readings.pop()
    if trouble:
        return still("refuse", trouble)
    if isinstance(draw, Keep):
        return still("keep", f"{record.role} is kept")
    if isinstance(draw, Zero):
        return PlanRow(record, "zero", d_in, 0.0, None, False, f"{record.role} is zero")
    assert d_in is not None
    std = draw.std_at(d_in=d_in) / divisor
    uniform = isinstance(draw, Uniform)
    factor = draw.bound_at(d_in=d_in) / divisor if isinstance(draw, Uniform) else std
    if not SMALLEST <= factor <= LARGEST:
        raise InputError(
            f"{record.key!r} would be drawn with a std of about {factor:.1e}, which float32 cannot "
            "hold: give a gamma nearer to 0.5"
        )
    return PlanRow(record, "draw", d_in, std, factor, uniform, "")


def _reading(record: WeightRecord, rule: Rule, role: str) -> tuple[Draw, int | None, float, str]:
    """Return the draw, d_in, divisor and trouble of a tensor, if it has this role."""
    draw = rule.draw(role)
    if isinstance(draw, Keep | Zero) or role in KEPT_ROLES:
        return draw, record.d_in, 1.0, ""
    d_in = record.d_in
    if role in EMBEDDING_ROLES and rule.embedding_d_in == "vocabulary":
        d_in = record.rows
    elif role in rule.d_in_by_role or group_of(role) in rule.d_in_by_role:
        d_in = record.d_model
    if d_in is None:
        return draw, None, 1.0, f"has a d_in that is not known (role {role})"
    if rule.residual != "none" and role in RESIDUAL_ROLES and record.n_layers is None:
        return draw, d_in, 1.0, "is divided by sqrt(2 n_layers), and n_layers is not known"
    return draw, d_in, rule.residual_divisor(role, n_layers=record.n_layers), ""

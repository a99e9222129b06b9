"""The plan of a torch model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import nn

from initrate.frameworks._layout import Layout
from initrate.frameworks._patterns import patterns
from initrate.frameworks.torch._trace import trace
from initrate.frameworks.torch._walk import ModelTensor, walk
from initrate.rule import Plan, Rule, Unknown, plan_records
from initrate.rule._choice import needed_rule


def plan_tensors(
    model: nn.Module,
    rule: Rule,
    *,
    unknown: Unknown = "refuse",
    layouts: Sequence[Layout] = (),
    example: object = None,
    include: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
) -> tuple[Plan, list[ModelTensor]]:
    """Return the plan and the tensors that its rows are of, in the same order."""
    tensors = walk(
        model,
        layouts=layouts,
        include=patterns("include", include),
        exclude=patterns("exclude", exclude),
        trace=None if example is None else trace(model, example),
    )
    records = [record for tensor in tensors for record in tensor.records]
    return plan_records(records, rule, unknown_tensors=unknown), tensors


def plan(
    model: nn.Module,
    *,
    gamma: float | None = None,
    rule: Rule | str | None = None,
    gamma_by_role: Mapping[str, float] | None = None,
    unknown: Unknown = "refuse",
    layouts: Sequence[Layout] = (),
    example: object = None,
    include: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
) -> Plan:
    """Return what a rule does with every tensor of a model; the model is not changed.

    Roles come from the modules that own the parameters, never from a shape. A tensor whose role
    or d_in is not known for certain is refused by name, or kept with `unknown="keep"`. With
    `example`, a batch or the shapes of one, a forward without values finds d_in of what has no
    layout, and refuses a layout that it contradicts.

    >>> model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    >>> [(row.name, row.d_in, row.std) for row in plan(model, gamma=0.5) if row.action == "draw"]
    [('0.weight', 64, 0.125), ('2.weight', 256, 0.0625)]
    """
    return plan_tensors(
        model,
        needed_rule(gamma, rule, gamma_by_role),
        unknown=unknown,
        layouts=layouts,
        example=example,
        include=include,
        exclude=exclude,
    )[0]

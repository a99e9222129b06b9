"""The audit of a torch model: what its weights measure, against a rule or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from initrate.errors import InputError
from initrate.frameworks._layout import Layout
from initrate.frameworks.torch._initial_loss import loss_findings
from initrate.frameworks.torch._measure import measure_tensors
from initrate.frameworks.torch._multipliers import multipliers
from initrate.frameworks.torch._plan import plan_tensors
from initrate.rule import Audit, Finding, Rule, Unknown, make_audit
from initrate.rule._choice import chosen_rule


def audit(
    model: nn.Module,
    *,
    gamma: float | None = None,
    rule: Rule | str | None = None,
    gamma_by_role: Mapping[str, float] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    batch: object = None,
    unknown: Unknown = "refuse",
    layouts: Sequence[Layout] = (),
    example: object = None,
    include: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    waive: Sequence[str] = (),
) -> Audit:
    """Return the measured std and the implied rate of every tensor, and what is wrong with them.

    Without gamma and rule, the rule is the one that the model's config has written down; where
    there is none, or the model was trained since, nothing is expected of the weights, and what
    needs no rule is still found. With
    an `optimizer`, every trainable parameter must be in one of its groups; with a `batch` that
    gives a loss, the loss must be near that of equal probabilities. The model is not changed.

    >>> model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    >>> found = audit(model, gamma=0.8, waive=["IR105"])
    >>> [(finding.code, finding.names) for finding in found.findings][0]
    ('IR101', ('0.weight',))
    >>> round(found.rows[0].gamma, 1)
    0.6
    """
    asked = chosen_rule(gamma, rule, gamma_by_role)
    chosen = _rule_written_down(model) if asked is None else asked
    plan, tensors = plan_tensors(
        model,
        Rule() if chosen is None else chosen,
        unknown=unknown,
        layouts=layouts,
        example=example,
        include=include,
        exclude=exclude,
    )
    empty = [tensor.records[0].name for tensor in tensors if tensor.tensor.is_meta]
    if empty:
        raise InputError(
            f"{empty[0]!r} is on the meta device and has no values to measure: build the model on "
            "a real device, or take plan()"
        )
    further: list[Finding] = []
    if optimizer is not None:
        from initrate.frameworks.torch._groups import optimizer_findings

        further += optimizer_findings(model, optimizer)
    if batch is not None:
        further += loss_findings(model, batch)
    return make_audit(
        plan,
        measure_tensors(tensors),
        rule=chosen,
        written=asked is None,
        multipliers=multipliers(tensors),
        further=further,
        waive=waive,
    )


def _rule_written_down(model: nn.Module) -> Rule | None:
    """Return the rule that apply has written into the config of the model, or None."""
    for owner in (model, getattr(model, "module", None)):
        config = getattr(owner, "config", None)
        if getattr(config, "initrate", None) is not None:
            from initrate.frameworks.huggingface import rule_of

            found = rule_of(config)
            return None if found is None else found[0]
    return None

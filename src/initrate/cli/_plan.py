"""`initrate plan`: what a rule does with every tensor of a model."""

from __future__ import annotations

import json as json_module
import sys
from dataclasses import dataclass
from typing import Literal

from initrate.cli._options import Switch
from initrate.cli._output import write
from initrate.cli._rules import (
    Gamma,
    GammaByRole,
    Include,
    LayoutFile,
    RuleName,
    Target,
    rule_of_options,
)
from initrate.cli._wide_table import print_table
from initrate.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Show what a rule does with every tensor of a model: drawn, zero, kept or refused, and why.

    TARGET is a config.json, a model folder, a safetensors file, or module:function. Of a config,
    no weights are made. The exit code is 1 where a tensor is refused.
    """

    target: Target
    """What names the model."""
    gamma: Gamma = None
    """The initialization rate: std = d_in^-gamma."""
    rule: RuleName = None
    """A rule by its name, with --gamma where it has one; `initrate list rules` names them."""
    gamma_by_role: GammaByRole = ()
    """Another rate for a role or a group of roles, as in qk=0.5."""
    layout: LayoutFile = None
    """The config that says what the tensors of a bare safetensors file are."""
    include: Include = ()
    """Only the tensors with such a name, as in 'encoder.*'; the others are kept."""
    exclude: Include = ()
    """Not the tensors with such a name, as in '*.bias'; they are kept."""
    unknown: Literal["refuse", "keep"] = "refuse"
    """What becomes of a tensor whose role is not known."""
    all: Switch = False
    """A row for every tensor, where else layers share one."""
    json: Switch = False
    """Write JSON, with every tensor, in place of the table."""

    def run(self) -> int:
        """Print the plan and return the exit code."""
        from initrate.frameworks._target import Which, open_target

        rule = rule_of_options(self.gamma, self.rule, self.gamma_by_role)
        if rule is None:
            raise InputError(
                "plan needs a rule: give one, as in --gamma 0.8 or --rule gpt2 "
                "(initrate list rules)"
            )
        target = open_target(self.target, layout=self.layout)
        plan = target.plan(rule, Which(self.include, self.exclude, self.unknown))
        for note in target.notes():
            print(f"note: {note}", file=sys.stderr)
        if self.json:
            text = {"schema": 1, "target": self.target, **plan.to_dict()}
            write(json_module.dumps(text, indent=2, allow_nan=False))
        else:
            print_table(*plan.table(whole=self.all), spare=("d_in", "shape", "role"))
            write(plan.summary())
        return 1 if plan.refused else 0

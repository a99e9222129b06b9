"""`initrate audit`: what the weights of a model measure, and what is wrong with them."""

from __future__ import annotations

import json as json_module
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

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

if TYPE_CHECKING:
    from initrate import rule as rules

Waive = Annotated[
    tuple[str, ...],
    tyro.conf.UseAppendAction,
    tyro.conf.arg(metavar="CODE", help_behavior_hint="(repeatable)"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Measure the weights of a model: their std and the rate it implies, beside a rule's.

    TARGET is a model folder, a safetensors file, or module:function. Without --gamma and --rule
    the rule is the one that the model's config has written down, or none: then stds are measured,
    and what needs no rule is still found. The exit code is 1 where something was found.
    """

    target: Target
    """What names the model."""
    gamma: Gamma = None
    """The initialization rate that the weights should have: std = d_in^-gamma."""
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
    waive: Waive = ()
    """A code that is no finding here, as in IR107."""
    all: Switch = False
    """A row for every tensor, where else layers share one."""
    json: Switch = False
    """Write JSON, with every tensor, in place of the table."""

    def run(self) -> int:
        """Print the audit and return the exit code."""
        from initrate.frameworks._target import Which, open_target
        from initrate.rule import CODES

        rule = rule_of_options(self.gamma, self.rule, self.gamma_by_role)
        waive = tuple(code.strip() for codes in self.waive for code in codes.split(","))
        target = open_target(self.target, layout=self.layout)
        which = Which(self.include, self.exclude, self.unknown)
        audit = target.audit(rule, which, waive=waive)
        for note in target.notes():
            print(f"note: {note}", file=sys.stderr)
        if self.json:
            text = {"schema": 1, "target": self.target, **audit.to_dict()}
            write(json_module.dumps(text, indent=2, allow_nan=False))
        else:
            print_table(*audit.table(whole=self.all), spare=("d_in", "role", "rule's std"))
            self._print_findings(audit, CODES)
            write(audit.summary())
        return 0 if audit.ok else 1

    def _print_findings(self, audit: rules.Audit, meanings: dict[str, str]) -> None:
        for code in dict.fromkeys(finding.code for finding in audit.findings):
            write(f"{code}: {meanings[code]}")
            for finding in audit.findings:
                if finding.code == code:
                    write(f"  {str(finding).removeprefix(f'{code} ')}")
        if audit.findings:
            write("")

"""The rule that options say, and tables of what it does: what the commands on models share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import tyro

from initrate.cli._options import number, optional
from initrate.errors import InputError

if TYPE_CHECKING:
    from initrate.rule import Rule

Target = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TARGET")]
Gamma = Annotated[float | None, number("GAMMA"), optional("GAMMA", unless="none")]
RuleName = Annotated[str | None, optional("NAME", unless="none")]
GammaByRole = Annotated[
    tuple[str, ...],
    tyro.conf.UseAppendAction,
    tyro.conf.arg(metavar="ROLE=GAMMA", help_behavior_hint="(repeatable)"),
]
Include = Annotated[
    tuple[str, ...],
    tyro.conf.UseAppendAction,
    tyro.conf.arg(metavar="PATTERN", help_behavior_hint="(repeatable)"),
]
LayoutFile = Annotated[str | None, optional("CONFIG.json", unless="none")]


def rule_of_options(
    gamma: float | None, rule: str | None, gamma_by_role: Sequence[str]
) -> Rule | None:
    """Return the rule that the options say, or None where they say nothing.

    >>> rule_of_options(0.8, None, ["qk=0.5"]).draw("query")
    Gamma(gamma=0.5)
    """
    from initrate.rule import named_rule

    by_role = {}
    for setting in gamma_by_role:
        role, _, text = (part.strip() for part in setting.partition("="))
        if role in by_role:
            raise InputError(f"--gamma-by-role names {role!r} twice: expected one rate for each")
        try:
            by_role[role] = float(text)
        except ValueError:
            raise InputError(
                f"--gamma-by-role {setting!r}: expected ROLE=GAMMA, as in qk=0.5"
            ) from None
    if gamma is None and rule is None:
        if by_role:
            raise InputError(
                "--gamma-by-role is given alone: give the rate of the other roles too, by --gamma"
            )
        return None
    changes: Mapping[str, object] = {"gamma_by_role": by_role} if by_role else {}
    return named_rule("formula" if rule is None else rule, gamma=gamma, **changes)

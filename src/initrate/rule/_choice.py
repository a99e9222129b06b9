"""The rule that a user means: by a gamma, by a name, or as it is."""

from __future__ import annotations

from collections.abc import Mapping

from initrate.errors import InputError
from initrate.rule._named import named_rule
from initrate.rule._rule import Rule


def chosen_rule(
    gamma: float | None,
    rule: Rule | str | None,
    gamma_by_role: Mapping[str, float] | None = None,
) -> Rule | None:
    """Return the rule that is meant; None where neither is given.

    A gamma goes with the name of a rule, and not with a rule, which has its own; so does
    `gamma_by_role`, the rates of some roles.

    >>> chosen_rule(0.8, None).gamma, chosen_rule(0.8, "paper-2405.05409").gamma
    (0.8, 0.8)
    >>> chosen_rule(0.8, None, {"qk": 0.5}).draw("query")
    Gamma(gamma=0.5)
    >>> chosen_rule(None, None)
    """
    if gamma_by_role is not None:
        if rule is not None and not isinstance(rule, str):
            raise InputError("rule and gamma_by_role are both given: put the rates into the rule")
        return named_rule(
            "formula" if rule is None else rule, gamma=gamma, gamma_by_role=gamma_by_role
        )
    if isinstance(rule, str):
        return named_rule(rule, gamma=gamma)
    if rule is None:
        return None if gamma is None else Rule(gamma=gamma)
    if not isinstance(rule, Rule):
        raise InputError(
            f"rule is {rule!r}: expected a Rule, or the name of one, as in rule='gpt2'"
        )
    if gamma is not None:
        raise InputError(f"gamma is {gamma!r} and rule is {rule.name!r}: give one of the two")
    return rule


def needed_rule(
    gamma: float | None,
    rule: Rule | str | None,
    gamma_by_role: Mapping[str, float] | None = None,
) -> Rule:
    """Return the rule that is meant; it is an error to give none.

    >>> needed_rule(0.8, None).gamma
    0.8
    """
    chosen = chosen_rule(gamma, rule, gamma_by_role)
    if chosen is None:
        raise InputError("neither gamma nor rule is given: give one, as in gamma=0.8")
    return chosen

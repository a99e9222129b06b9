"""Rule and seed in a model's configuration, so that a later audit needs no flag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from initrate.errors import InputError
from initrate.rule import Rule
from initrate.rule._checks import whole_number

KEY = "initrate"
"""The name under which a configuration holds the rule and the seed."""


def record(rule: Rule, seed: int) -> dict[str, object]:
    """Return the plain values that a configuration keeps.

    >>> record(Rule(gamma=0.8), 3)["seed"]
    3
    """
    return {"rule": rule.to_dict(), "seed": whole_number("seed", seed, least=0)}


def write_rule(config: Any, rule: Rule, seed: int) -> None:
    """Write the rule and the seed into a configuration of transformers.

    `save_pretrained` keeps them, and `from_pretrained` reads them again.
    """
    setattr(config, KEY, record(rule, seed))


def rule_of(config: Any) -> tuple[Rule, int] | None:
    """Return the rule and the seed that a configuration names, or None where it names none.

    `config` is a configuration of transformers, or what its config.json holds.

    >>> rule_of({"initrate": record(Rule(gamma=0.8), 3)}) == (Rule(gamma=0.8), 3)
    True
    >>> rule_of({"model_type": "gpt2"}) is None
    True
    """
    found = config.get(KEY) if isinstance(config, Mapping) else getattr(config, KEY, None)
    if found is None:
        return None
    if not isinstance(found, Mapping) or not {"rule", "seed"} <= found.keys():
        raise InputError(
            f"the configuration's {KEY!r} is {found!r}: expected a rule and a seed; delete it, or "
            "apply a rule again"
        )
    seed = whole_number("seed of the configuration", found["seed"], least=0)
    return Rule.from_dict(found["rule"]), seed

"""A cell: one training run, said whole, and the id that follows from it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import cast

from initrate.errors import unknown, whole_number
from initrate.model import ModelConfig
from initrate.rule import ROLE_GROUPS, Gamma, Rule
from initrate.study._sections import (
    READERS,
    Table,
    canonical_json,
    model_dict,
    rule_dict,
    section,
    task_dict,
    training_dict,
)
from initrate.tasks import AnchorTask
from initrate.training import Seeds, Training


@dataclass(frozen=True, slots=True)
class Cell:
    """One training run: what is learned, by which model, from which weights, how, with what seeds.

    >>> from initrate.tasks import variant
    >>> cell = Cell(variant("34-wrong"), ModelConfig(), Rule(gamma=0.8), Training(), Seeds.all(1))
    >>> Cell.from_dict(cell.to_dict()) == cell, len(cell.id)
    (True, 12)
    """

    task: AnchorTask
    model: ModelConfig
    rule: Rule
    training: Training
    seeds: Seeds

    @property
    def id(self) -> str:
        """The first 12 hex digits of the SHA-256 of the cell's canonical JSON.

        Equal numbers give equal ids, whether written 1 or 1.0.
        """
        sections = {name: _section_json(getattr(self, name)) for name in sorted(_DICTS)}
        whole = ",".join(f'"{name}":{text}' for name, text in sections.items())
        return hashlib.sha256(f"{{{whole}}}".encode()).hexdigest()[:12]

    def to_dict(self) -> dict[str, object]:
        """Return the cell as plain tables, all fields said."""
        return {name: to_dict(getattr(self, name)) for name, to_dict in _DICTS.items()}

    @classmethod
    def from_dict(cls, table: Table) -> Cell:
        """Return the cell of such tables; an unknown key is an InputError."""
        known = [field.name for field in fields(cls)]
        for key in table:
            if key not in known:
                raise unknown("section of a cell", key, known)
        sections = {name: section(table, name) for name in known}
        read = {name: READERS[name](sections[name]) for name in READERS}
        return cls(
            task=cast("AnchorTask", read["task"]),
            model=cast("ModelConfig", read["model"]),
            rule=cast("Rule", read["rule"]),
            training=cast("Training", read["training"]),
            seeds=seeds_table(sections["seeds"]),
        )


_DICTS: dict[str, Callable[..., dict[str, object]]] = {
    "task": task_dict,
    "model": model_dict,
    "rule": rule_dict,
    "training": training_dict,
    "seeds": asdict,
}


_NAMES: dict[type, str] = {
    AnchorTask: "task",
    ModelConfig: "model",
    Rule: "rule",
    Training: "training",
    Seeds: "seeds",
}


@lru_cache(maxsize=4096)
def _section_json(section: AnchorTask | ModelConfig | Rule | Training | Seeds) -> str:
    """A grid has few different sections: each is written once."""
    return canonical_json(_DICTS[_NAMES[type(section)]](section))


def seeds_table(table: Table) -> Seeds:
    """Return the seeds of a table with any of the four.

    >>> seeds_table({"init": 3})
    Seeds(init=3, pool=0, order=0, evaluation=0)
    """
    known = [field.name for field in fields(Seeds)]
    for key, seed in table.items():
        if key not in known:
            raise unknown("seed", key, known)
        check_seed(seed)
    return Seeds(**cast("dict[str, int]", dict(table)))


def check_seed(seed: object) -> int:
    """Return the seed, or raise the InputError of one that is not a whole number from 0 on."""
    whole_number("seed", seed, least=0, most=2**63 - 1)
    return cast("int", seed)


WEIGHT_ROLES = (
    "token_embedding",
    "position",
    "query",
    "key",
    "value",
    "attention_output",
    "mlp_in",
    "mlp_gate",
    "mlp_out",
    "unembedding",
)
"""The roles of a decoder's weights: their rates say what a cell's gamma is."""


def rates(rule: Rule) -> dict[str, float | None]:
    """Return gamma by weight role; None where the draw has no rate.

    >>> rates(Rule(gamma=0.8))["query"]
    0.8
    """
    draws = {role: rule.draw(role) for role in WEIGHT_ROLES}
    return {role: draw.gamma if isinstance(draw, Gamma) else None for role, draw in draws.items()}


def one_rate(rule: Rule) -> float | None:
    """Return the gamma of a rule, or None where roles differ or have no rate.

    >>> one_rate(Rule(gamma=0.8)), one_rate(Rule(gamma=0.8, gamma_by_role={"qk": 0.5}))
    (0.8, None)
    """
    found = set(rates(rule).values())
    return found.pop() if len(found) == 1 else None


def rates_that_differ(rule: Rule) -> dict[str, float]:
    """Return gamma by group of roles, or by role where a group differs in itself.

    Empty where one gamma says it all; roles without a rate are left out.

    >>> rates_that_differ(Rule(gamma=0.8, gamma_by_role={"qk": 0.5}))["qk"]
    0.5
    """
    by_role = rates(rule)
    if one_rate(rule) is not None:
        return {}
    differing: dict[str, float] = {}
    for group, roles in ROLE_GROUPS.items():
        found = {role: by_role[role] for role in roles if role in by_role}
        if len(set(found.values())) == 1:
            found = {group: next(iter(found.values()))}
        differing.update({name: gamma for name, gamma in found.items() if gamma is not None})
    return differing

"""Axes: which scalar fields of a cell there are, what they are called, and how one is set."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from types import UnionType
from typing import Literal, Union, cast, get_args, get_origin

from initrate.errors import InputError, unknown
from initrate.model import ModelConfig
from initrate.rule import KEPT_ROLES, ROLE_GROUPS, ROLES, RULES, Rule
from initrate.study._cell import Cell, check_seed
from initrate.study._range import Value
from initrate.study._sections import (
    float_of,
    kinds,
    model_dict,
    model_table,
    rule_dict,
    rule_table,
    task_dict,
    task_table,
    training_dict,
    training_table,
)
from initrate.tasks import VARIANTS, AnchorTask, task_from_dict, variant
from initrate.training import Seeds, Training

_SHORT = {
    "rule.gamma": "gamma",
    "model.n_layers": "depth",
    "model.shape": "shape",
    "rule.name": "rule",
    "task.variant": "variant",
}
_NAMED = ("task.variant", "model.shape", "rule.name")
"""Fields that name a whole section; they are set before the fields inside it."""


@cache
def axis_paths() -> Mapping[str, str]:
    """Return the dotted path of every axis, by the name its column has.

    A name is the last part of the path where that is unique, and the path where it is not.

    >>> paths = axis_paths()
    >>> paths["gamma"], paths["depth"], paths["lr"], paths["gamma_qk"]
    ('rule.gamma', 'model.n_layers', 'training.lr', 'rule.gamma_by_role.qk')
    """
    paths = [*_NAMED]
    paths += [f"task.{name}" for name in _scalars(AnchorTask) if name != "variant"]
    paths += [f"model.{name}" for name in _scalars(ModelConfig)]
    paths += [f"rule.{name}" for name in _scalars(Rule) if name != "name"]
    paths += [f"training.{name}" for name in _scalars(Training)]
    last = [path.split(".", 1)[1] for path in paths if path not in _SHORT]
    names: dict[str, str] = {}
    for path in paths:
        end = path.split(".", 1)[1]
        unique = last.count(end) == 1 and end not in _SHORT.values()
        names[_SHORT.get(path, end if unique else path)] = path
    by_role = dict.fromkeys([*ROLE_GROUPS, *(role for role in ROLES if role not in KEPT_ROLES)])
    return names | {f"gamma_{role}": f"rule.gamma_by_role.{role}" for role in by_role}


def axis_name(given: str) -> str:
    """Return the column name of an axis that was given by its name or its dotted path.

    >>> axis_name("model.n_layers"), axis_name("n_layers"), axis_name("training.lr")
    ('depth', 'depth', 'lr')
    """
    paths = axis_paths()
    if not isinstance(given, str):
        raise _unknown_field(given, paths)
    if given in paths:
        return given
    by_path = {path: name for name, path in paths.items()}
    if given in by_path:
        return by_path[given]
    ends = [name for name, path in paths.items() if path.rsplit(".", 1)[1] == given]
    if len(ends) == 1:
        return ends[0]
    if given.removeprefix("seeds.") in _SEEDS:
        raise InputError(f"axis {given!r} is a seed: give it in [seeds], as in init = [1, 2, 3]")
    if given in _LISTS:
        raise InputError(f"axis {given!r} is not one number or word: give it in its own section")
    raise _unknown_field(given, paths)


def _unknown_field(given: object, paths: Mapping[str, str]) -> InputError:
    """There are some seventy fields: the nearest are said, and where all of them stand."""
    known = paths.values() if "." in str(given) else paths
    near = difflib.get_close_matches(str(given), known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return InputError(
        f"unknown axis {str(given)[:80]!r}: {hint}initrate list fields names all there are"
    )


def axis_names(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the names as they were given, by the names that their columns have.

    >>> axis_names({"training.lr": 1e-3})
    {'lr': 'training.lr'}
    """
    if not isinstance(settings, Mapping):
        raise InputError(f"settings is {settings!r}: expected a mapping, as in {{'lr': 0.001}}")
    return {axis_name(given): given for given in settings}


def axis_path(name: str) -> str:
    """Return the dotted path of an axis.

    >>> axis_path("depth")
    'model.n_layers'
    """
    return axis_paths()[axis_name(name)]


def of_its_kind(name: str, found: Value) -> Value:
    """Return a value as its field holds it: a whole number given for a float becomes one.

    >>> of_its_kind("gamma", 1), of_its_kind("depth", 3), of_its_kind("clip_norm", "none")
    (1.0, 3, 'none')
    """
    section, field = axis_path(name).split(".", 1)
    whole = isinstance(found, int) and not isinstance(found, bool)
    holds_float = field.startswith("gamma") or float in kinds(_SECTIONS[section]).get(field, ())
    return float_of(name, cast("int", found)) if whole and holds_float else found


def in_order(names: Mapping[str, object]) -> list[str]:
    """Return the names in the order in which they are set: whole sections before single fields."""
    return sorted(names, key=lambda name: axis_path(name) not in _NAMED)


def with_value(cell: Cell, name: str, found: object) -> Cell:
    """Return the cell with one scalar field changed; all checks of the field's section are made.

    >>> from initrate.tasks import variant
    >>> cell = Cell(variant("34-wrong"), ModelConfig(), Rule(gamma=0.5), Training(), Seeds())
    >>> with_value(cell, "depth", 4).model.n_layers
    4
    """
    path = axis_path(name)
    if not isinstance(found, str | int | float | list | tuple | Mapping | None):
        # An array would have no truth value where words are compared.
        raise InputError(f"{name} is {found!r}: expected one number, word or switch")
    section, field = path.split(".", 1)
    if path in _NAMED:
        return _with_named(cell, path, found)
    if section == "task":
        return replace(cell, task=task_from_dict({**task_dict(cell.task), field: found}))
    if section == "model":
        return replace(cell, model=model_table({**model_dict(cell.model), field: found}))
    if section == "training":
        changed = training_table({**training_dict(cell.training), field: found})
        return replace(cell, training=changed)
    return replace(cell, rule=_with_rule_field(cell.rule, field, found))


def with_seed(cell: Cell, name: str, seed: object) -> Cell:
    """Return the cell with one of its four seeds changed, or all of them by the name "all"."""
    if name == "all":
        return replace(cell, seeds=Seeds.all(check_seed(seed)))
    if name not in _SEEDS:
        raise unknown("seed", name, _SEEDS)
    return replace(cell, seeds=replace(cell.seeds, **{name: check_seed(seed)}))


def _with_named(cell: Cell, path: str, found: object) -> Cell:
    """What differs from the section's own named form is kept; a shape replaces the whole model."""
    if path == "model.shape":
        return replace(cell, model=model_table({"shape": found}))
    if path == "task.variant":
        own = task_dict(variant(cell.task.variant)) if cell.task.variant in VARIANTS else {}
        changes = _differing(task_dict(cell.task), own) if own else {}
        return replace(cell, task=task_table({**changes, "variant": found}))
    if not isinstance(found, str) or found not in RULES:
        raise unknown("rule", found, RULES)
    own = rule_dict(RULES[cell.rule.name].rule) if cell.rule.name in RULES else {}
    changes = _differing(rule_dict(cell.rule), own) if own else {}
    if RULES[found].rule.gamma is None:
        changes.pop("gamma", None)
    return replace(cell, rule=rule_table({**changes, "name": found}))


def _differing(table: Mapping[str, object], other: Mapping[str, object]) -> dict[str, object]:
    return {key: entry for key, entry in table.items() if other.get(key) != entry}


def _with_rule_field(rule: Rule, field: str, found: object) -> Rule:
    table = rule_dict(rule)
    if field.startswith("gamma_by_role."):
        by_role = dict(cast("Mapping[str, object]", table["gamma_by_role"]))
        by_role[field.split(".", 1)[1]] = found
        return Rule.from_dict({**table, "gamma_by_role": by_role})
    return Rule.from_dict({**table, field: found})


_SECTIONS: Mapping[str, type] = {
    "task": AnchorTask,
    "model": ModelConfig,
    "rule": Rule,
    "training": Training,
}
_SEEDS = tuple(field.name for field in fields(Seeds))
_LISTS = ("decay_schedule", "loss_positions", "anchors", "maps", "unseen", "overrides", "probe")


def _scalars(kind: type) -> list[str]:
    """The fields of a dataclass that hold one number, word or switch."""
    return [field.name for field in fields(kind) if _is_scalar(kinds(kind)[field.name][0])]


def _is_scalar(hint: object) -> bool:
    if hint in (int, float, str, bool, type(None)) or get_origin(hint) is Literal:
        return True
    return get_origin(hint) in (Union, UnionType) and all(map(_is_scalar, get_args(hint)))

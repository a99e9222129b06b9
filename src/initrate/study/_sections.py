"""The sections of a cell as plain tables and back: what study files and ids are made of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import cache
from typing import Any, cast, get_args, get_type_hints

from initrate.errors import InputError, unknown
from initrate.model import SHAPES, ModelConfig, shape
from initrate.rule import RULES, Rule
from initrate.tasks import AnchorTask, task_from_dict
from initrate.training import Training, window

Table = Mapping[str, object]


def canonical_json(content: object) -> str:
    """Return JSON that is one for equal content: sorted keys, no spaces, 1.0 written as 1.

    >>> canonical_json({"b": 1.0, "a": (2, 0.5)})
    '{"a":[2,0.5],"b":1}'
    """
    return json.dumps(_canonical(content), sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(content: object) -> str:
    """Return the SHA-256, in hex, of the content's canonical JSON.

    >>> digest({"gamma": 1}) == digest({"gamma": 1.0})
    True
    """
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def _canonical(content: object) -> object:
    if isinstance(content, float) and content.is_integer():
        return int(content)
    if isinstance(content, Mapping):
        return {str(key): _canonical(entry) for key, entry in content.items()}
    if isinstance(content, list | tuple):
        return [_canonical(entry) for entry in content]
    return content


def task_table(table: Table) -> AnchorTask:
    """Return the task of a `[task]` table: a variant's name and what differs from it.

    >>> task_table({"variant": "34-wrong", "pool": 20000}).pool
    20000
    """
    return task_from_dict(dict(table))


def model_table(table: Table) -> ModelConfig:
    """Return the shape of a `[model]` table: a shape's name and what differs from it.

    >>> model_table({"shape": "laptop", "n_layers": 3}).n_layers
    3
    """
    rest = dict(table)
    name = rest.pop("shape", "laptop")
    if not isinstance(name, str) or name not in SHAPES:
        raise unknown("shape", name, SHAPES)
    known = [field.name for field in fields(ModelConfig)]
    for key in rest:
        if key not in known:
            raise unknown("model field", key, ["shape", *known])
    return shape(name, **_numbers(ModelConfig, rest))


def rule_table(table: Table) -> Rule:
    """Return the rule of a `[rule]` table: a rule's name and what differs from it."""
    name = table.get("name", "formula")
    # A table with all its draws said may have any name; any other name is a slip of the pen.
    if "draws" not in table and (not isinstance(name, str) or name not in RULES):
        raise unknown("rule", name, RULES)
    return Rule.from_dict(dict(table))


def training_table(table: Table) -> Training:
    """Return the recipe of a `[training]` table: what differs from the laptop recipe.

    `decay_schedule` is `"constant"`, `{window = [first, last]}` or
    `{piecewise = [[step, factor], ...]}`; `"none"` says that there is no `clip_norm`.

    >>> training_table({"decay_schedule": {"window": [100, 200]}}).decay_schedule
    ((0, 0.0), (100, 1.0), (200, 0.0))
    """
    known = [field.name for field in fields(Training)]
    for key in table:
        if key not in known:
            raise unknown("training field", key, known)
    entries = _numbers(Training, table)
    if "decay_schedule" in entries:
        entries["decay_schedule"] = _decay_schedule(entries["decay_schedule"])
    if "loss_positions" in entries:
        entries["loss_positions"] = _whole_numbers("loss_positions", entries["loss_positions"])
    return Training(**cast("dict[str, Any]", entries))


def training_dict(training: Training) -> dict[str, object]:
    """Return the table of a recipe, which `training_table` reads back.

    >>> training_table(training_dict(Training(clip_norm=None))) == Training(clip_norm=None)
    True
    """
    table = _numbers(Training, asdict(training))
    pairs = [[step, float(factor)] for step, factor in training.decay_schedule]
    table["decay_schedule"] = {"piecewise": pairs} if pairs else "constant"
    table["loss_positions"] = list(training.loss_positions)
    optional = _optional(Training)
    return {key: "none" if key in optional and e is None else e for key, e in table.items()}


def model_dict(model: ModelConfig) -> dict[str, object]:
    """Return the table of a shape, all fields said, which `model_table` reads back.

    >>> model_table(model_dict(ModelConfig(d_ff=96))).d_ff
    96
    """
    return _numbers(ModelConfig, asdict(model))


def rule_dict(rule: Rule) -> dict[str, object]:
    """Return the table of a rule, which `rule_table` reads back."""
    return dict(rule.to_dict())


def task_dict(task: AnchorTask) -> dict[str, object]:
    """Return the table of a task, which `task_table` reads back."""
    return dict(task.to_dict())


def section(table: Table, name: str) -> Table:
    """Return one section of a table, empty where it is not there.

    >>> section({"axes": {"depth": [2, 3]}}, "axes")
    {'depth': [2, 3]}
    """
    found = table.get(name, {})
    if not isinstance(found, Mapping):
        raise InputError(f"{name} is {found!r}: expected a table, as in [{name}]")
    return cast("Table", found)


READERS: dict[str, Callable[[Table], object]] = {
    "task": task_table,
    "model": model_table,
    "rule": rule_table,
    "training": training_table,
}


def float_of(name: str, number: float) -> float:
    """Return a number as a float; one that no float can hold is an InputError.

    >>> float_of("lr", 1)
    1.0
    """
    try:
        return float(number)
    except OverflowError as error:
        raise InputError(f"{name} is beyond all bounds: expected a finite number") from error


@cache
def kinds(kind: type) -> Mapping[str, tuple[object, ...]]:
    """Return the types that each field of a dataclass may have.

    >>> kinds(ModelConfig)["n_layers"]
    (<class 'int'>,)
    """
    return {name: (hint, *get_args(hint)) for name, hint in get_type_hints(kind).items()}


@cache
def _optional(kind: type) -> frozenset[str]:
    return frozenset(name for name, found in kinds(kind).items() if type(None) in found)


def _numbers(kind: type, table: Table) -> dict[str, object]:
    """Whole numbers given for fields that hold floats become floats; "none" becomes None."""
    optional = _optional(kind)
    entries: dict[str, object] = {}
    for key, entry in table.items():
        whole = isinstance(entry, int) and not isinstance(entry, bool)
        if key in optional and isinstance(entry, str) and entry == "none":
            entries[key] = None
        elif whole and float in kinds(kind).get(key, ()):
            entries[key] = float_of(key, cast("int", entry))
        else:
            entries[key] = entry
    return entries


def _decay_schedule(entry: object) -> tuple[tuple[int, float], ...]:
    if isinstance(entry, str | tuple) and entry in ("constant", ()):
        return ()
    if isinstance(entry, Mapping) and len(entry) == 1:
        (form, numbers), *_ = cast("Mapping[str, object]", entry).items()
        if form == "window":
            first, last = (*_whole_numbers("decay_schedule window", numbers), None, None)[:2]
            if first is not None and last is not None and _length(numbers) == 2:
                return window(first, last)
        if form == "piecewise" and isinstance(numbers, list | tuple):
            return tuple(_decay_pair(pair) for pair in cast("list[object]", numbers))
    raise InputError(
        f"training decay_schedule is {entry!r}: expected 'constant', {{window = [first, last]}} "
        "or {piecewise = [[step, factor], ...]}"
    )


def _decay_pair(pair: object) -> tuple[int, float]:
    if isinstance(pair, list | tuple) and _length(pair) == 2:
        step, factor = cast("list[object]", pair)
        number = isinstance(factor, int | float) and not isinstance(factor, bool)
        if isinstance(step, int) and not isinstance(step, bool) and number:
            return step, float_of("a factor of decay_schedule", cast("float", factor))
    raise InputError(
        f"training decay_schedule holds {pair!r}: expected [step, factor], as in [100, 0.5]"
    )


def _length(entry: object) -> int:
    return len(cast("list[object]", entry)) if isinstance(entry, list | tuple) else 0


def _whole_numbers(name: str, entry: object) -> tuple[int, ...]:
    if isinstance(entry, list | tuple):
        numbers = tuple(cast("list[object]", entry))
        if all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
            return cast("tuple[int, ...]", numbers)
    raise InputError(f"training {name} is {entry!r}: expected a list of whole numbers")

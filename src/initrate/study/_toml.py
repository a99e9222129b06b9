"""Study files: a study as TOML text, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import cast

from initrate.errors import InputError, unknown
from initrate.files import dump_toml, load_toml, shown
from initrate.study._config import Protocol, StudyConfig, seeds_from_count
from initrate.study._range import Value, axis_values
from initrate.study._sections import (
    Table,
    digest,
    model_dict,
    model_table,
    rule_dict,
    rule_table,
    section,
    task_dict,
    task_table,
    training_dict,
    training_table,
)
from initrate.training import Seeds

SCHEMA = 1
_TOP = ("schema", "name", "description", "task", "model", "rule", "training", "axes", "seeds")
_KNOWN = (*_TOP, "protocol")
_SEEDS = tuple(field.name for field in fields(Seeds))


def load_study(source: Path | str) -> StudyConfig:
    """Return the study of a TOML file (a `Path`) or of TOML text (a `str`).

    >>> text = 'schema = 1\\n[task]\\nvariant = "34-wrong"\\n[axes]\\ngamma = "0.5:0.7:0.1"'
    >>> load_study(text).axes["gamma"]
    (0.5, 0.6, 0.7)
    """
    if not isinstance(source, Path | str):
        raise InputError(f"the study file is {source!r}: expected a Path, or TOML as text")
    try:
        return config_from_dict(load_toml(source))
    except InputError as error:
        if isinstance(source, Path) and shown(source) not in str(error):
            raise type(error)(f"{shown(source)}: {error}") from error
        raise


def dump_study(config: StudyConfig) -> str:
    """Return the TOML text of a study, all fields said; `load_study` reads it back equal."""
    return dump_toml(config_to_dict(config))


def config_to_dict(config: StudyConfig) -> dict[str, object]:
    """Return a study as plain tables, all fields said: what is written and compared."""
    if not isinstance(config, StudyConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"study is {type(config).__name__}: expected a StudyConfig, as load_study and preset "
            "give it"
        )
    protocol: dict[str, object] = {"kind": config.protocol}
    if config.lrs:
        protocol["lrs"] = list(config.lrs)
    return {
        "schema": SCHEMA,
        "name": config.name,
        "description": config.description,
        "task": task_dict(config.task),
        "model": model_dict(config.model),
        "rule": rule_dict(config.rule),
        "training": training_dict(config.training),
        "axes": {name: list(values) for name, values in config.axes.items()},
        "seeds": {
            "list": list(config.seeds),
            **{name: list(values) for name, values in config.seed_axes.items()},
        },
        "protocol": protocol,
    }


def config_from_dict(table: Table) -> StudyConfig:
    """Return the study of plain tables, as a study file has them."""
    for key in table:
        if key not in _KNOWN:
            raise unknown("key of a study file", key, _KNOWN)
    schema = table.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema != SCHEMA:
        raise InputError(
            f"the study file has schema {table.get('schema')!r}: expected schema = {SCHEMA}"
        )
    if "task" not in table:
        raise InputError("the study file has no [task]: expected one, as in variant = '34-wrong'")
    seeds, seed_axes = _seeds(section(table, "seeds"))
    protocol, lrs = _protocol(section(table, "protocol"))
    return StudyConfig(
        name=cast("str", table.get("name", "study")),
        description=cast("str", table.get("description", "")),
        task=task_table(section(table, "task")),
        model=model_table(section(table, "model")),
        rule=rule_table(section(table, "rule")),
        training=training_table(section(table, "training")),
        axes=_flat(section(table, "axes")),
        seeds=seeds,
        seed_axes=seed_axes,
        protocol=protocol,
        lrs=lrs,
    )


def config_digest(config: StudyConfig) -> str:
    """Return a hash of all that a study trains; its name and description have no part in it."""
    named = config_to_dict(config)
    return digest({key: named[key] for key in named if key not in ("name", "description")})


def _flat(axes: Table) -> dict[str, tuple[Value, ...]]:
    """A dotted key, unquoted, makes tables in tables; both ways of writing are one."""
    flat: dict[str, tuple[Value, ...]] = {}
    for name, found in axes.items():
        if isinstance(found, Mapping):
            if not found:
                raise InputError(f"axis {name} is an empty table: expected values, as in [1, 2]")
            inner = _flat(cast("Table", found))
            flat |= {f"{name}.{rest}": values for rest, values in inner.items()}
        else:
            flat[name] = axis_values(found, name=name)
    return flat


def _seeds(table: Table) -> tuple[tuple[int, ...], dict[str, tuple[int, ...]]]:
    known = ("count", "list", *_SEEDS)
    for key in table:
        if key not in known:
            raise unknown("key of [seeds]", key, known)
    if "count" in table and "list" in table:
        raise InputError("[seeds] has both count and list: give one of the two")
    crossed = {
        name: cast("tuple[int, ...]", axis_values(table[name], name=f"seeds.{name}"))
        for name in _SEEDS
        if name in table
    }
    if "list" in table:
        listed = table["list"]
        if not isinstance(listed, list | tuple) or not listed:
            raise InputError(f"[seeds] list is {listed!r}: expected at least one, as in [1, 2, 3]")
        return tuple(cast("list[int]", listed)), crossed
    return seeds_from_count(table.get("count", 1)), crossed


def _protocol(table: Table) -> tuple[Protocol, tuple[float, ...]]:
    for key in table:
        if key not in ("kind", "lrs"):
            raise unknown("key of [protocol]", key, ("kind", "lrs"))
    lrs = axis_values(table["lrs"], name="protocol lrs") if "lrs" in table else ()
    return cast("Protocol", table.get("kind", "single")), cast("tuple[float, ...]", lrs)

"""`initrate list`: the names there are, each with a line on it."""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import tyro

from initrate.cli._options import Switch
from initrate.cli._output import show, write

if TYPE_CHECKING:
    from initrate.model import ModelConfig

Row = Mapping[str, object]

_ROLES = {
    "token_embedding": "table of tokens: the row of a token is its vector",
    "position": "table of learned positions, added to the tokens' vectors",
    "query": "map into the queries of an attention",
    "key": "map into the keys of an attention",
    "value": "map into the values of an attention",
    "attention_output": "map of an attention back into the residual stream",
    "mlp_in": "first map of an MLP",
    "mlp_gate": "map of a gated MLP beside its first, into the gate",
    "mlp_out": "last map of an MLP, back into the residual stream",
    "unembedding": "map into the logits of the tokens",
    "router": "map that chooses the experts of a mixture",
    "convolution": "kernel: its d_in is the input channels of a group times the kernel's places",
    "linear": "map with another part: a head, a pooler, a projection between parts of a model",
    "norm": "gain or bias of a norm; always kept",
    "bias": "bias of a map; zero unless the rule says otherwise",
    "structured": "values with a structure of their own, as in a state space; always kept",
}
"""What each role is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class List:
    """Show the names of rules, roles, presets, shapes, tasks or fields, with a line on each."""

    names: tyro.conf.Positional[Literal["rules", "roles", "presets", "shapes", "tasks", "fields"]]
    """Which names."""
    json: Switch = False
    """Write JSON instead of a table."""

    def run(self) -> int:
        """Print the names and return the exit code."""
        readers = {"rules": rules, "roles": roles, "presets": presets, "shapes": shapes}
        found = (readers | {"tasks": tasks, "fields": fields})[self.names]()
        if self.json:
            write(json_module.dumps({"schema": 1, self.names: found}, indent=2))
        else:
            print_rows(found)
        return 0


def rules() -> list[Row]:
    """Return the named rules.

    >>> rules()[0]["name"]
    'formula'
    """
    from initrate.rule import RULES

    return [
        {"name": name, "description": rule.description, "source": rule.source}
        for name, rule in RULES.items()
    ]


def roles() -> list[Row]:
    """Return the roles of tensors, each with the group that options may name in its place.

    >>> roles()[2]
    {'name': 'query', 'group': 'qk', 'description': 'map into the queries of an attention'}
    """
    from initrate.rule import ROLES, group_of

    return [{"name": role, "group": group_of(role), "description": _ROLES[role]} for role in ROLES]


def presets() -> list[Row]:
    """Return the presets."""
    from initrate.study import PRESETS

    return [{"name": name, "description": line} for name, line in PRESETS.items()]


def shapes() -> list[Row]:
    """Return the shapes of models.

    >>> shapes()[0]["name"], shapes()[0]["d_model"]
    ('laptop', 64)
    """
    from dataclasses import asdict

    from initrate.model import SHAPES

    return [
        {"name": name, "description": shape_words(config), **asdict(config)}
        for name, config in SHAPES.items()
    ]


def shape_words(config: ModelConfig) -> str:
    """Return the sizes and switches of a shape in a line."""
    heads = "head" if config.n_heads == 1 else "heads"
    return (
        f"{config.n_layers} layers, d_model {config.d_model}, {config.n_heads} {heads} of d_k "
        f"{config.d_k}, d_ff {config.d_ff}, {config.norm_position}-{config.norm}, "
        f"{config.activation}, positions {config.positions}, biases {config.biases}"
        + (", tied" if config.tied else "")
    )


def tasks() -> list[Row]:
    """Return the tasks, with what is unseen in each."""
    from initrate.tasks import VARIANTS, unseen_table

    return [
        {"name": name, "description": line, "unseen": unseen_table([name])}
        for name, line in VARIANTS.items()
    ]


def fields() -> list[Row]:
    """Return the fields that `--set` and axes may name, each with its path.

    >>> fields()[0]
    {'name': 'variant', 'description': 'task.variant'}
    """
    from initrate.study import axis_paths

    return [{"name": name, "description": path} for name, path in axis_paths().items()]


def print_rows(rows: list[Row]) -> None:
    """Print a table of the names and what is said of them; the rest is left to the JSON."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    columns = [key for key in ("name", "group", "description", "source") if key in rows[0]]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=column == "name", overflow="fold")
    for row in rows:
        table.add_row(*("" if row[column] is None else str(row[column]) for column in columns))
    show(table)

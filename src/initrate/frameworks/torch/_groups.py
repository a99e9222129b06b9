"""Groups of an optimizer: which parameters decay, and whether each is in exactly one group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from initrate.errors import InputError
from initrate.frameworks._layout import Layout
from initrate.frameworks.torch._names import canonical_name, wrapper_prefix
from initrate.frameworks.torch._walk import ModelTensor, walk
from initrate.rule import Decay, DecayedTensor, DecayPolicy, Finding, refuse_troubles
from initrate.rule._table import html_table, plain_table


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One trainable tensor, and the group its parameters are in."""

    name: str
    shape: tuple[int, ...]
    role: str
    """`?` where it is not known."""
    group: str
    weight_decay: float
    size: int
    aliases: tuple[str, ...]


class ParamGroups(list[dict[str, Any]]):
    """Groups for any optimizer of torch: dicts with `name`, `params` and `weight_decay`.

    A table in notebooks says what decays; `rows` holds the same.
    """

    def __init__(self, groups: Sequence[dict[str, Any]], rows: tuple[GroupRow, ...]) -> None:
        super().__init__(groups)
        self.rows = rows

    @property
    def unknown(self) -> tuple[GroupRow, ...]:
        """The tensors whose role is not known: a matrix decays, anything else does not."""
        return tuple(row for row in self.rows if row.role == "?")

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return by group how many tensors and how many values are in it.

        >>> param_groups(nn.Linear(4, 2), weight_decay=0.1).counts()
        {'decayed': (1, 8), 'not decayed': (1, 2)}
        """
        found: dict[str, tuple[int, int]] = {group["name"]: (0, 0) for group in self}
        for row in self.rows:
            tensors, values = found[row.group]
            found[row.group] = tensors + 1, values + row.size
        return found

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the head and the rows of the table that people read."""
        head = ("name", "shape", "role", "group", "weight decay")
        return head, [
            (
                row.name,
                " × ".join(map(str, row.shape)) or "scalar",
                "unknown" if row.role == "?" else row.role,
                row.group,
                f"{row.weight_decay:g}",
            )
            for row in self.rows
        ]

    def __str__(self) -> str:
        notes = [f"{name}: {n} tensors, {size:,} values" for name, (n, size) in _counted(self)]
        return plain_table(*self.table(), below="\n".join(notes))

    def _repr_html_(self) -> str:
        notes = [f"{name}: {n} tensors, {size:,} values" for name, (n, size) in _counted(self)]
        if self.unknown:
            notes.append(f"unknown role: {len(self.unknown)} tensors")
        return html_table(*self.table(), notes=notes)


def _counted(groups: ParamGroups) -> Iterator[tuple[str, tuple[int, int]]]:
    return iter(groups.counts().items())


def param_groups(
    model: nn.Module,
    *,
    weight_decay: float,
    decay: DecayPolicy = "matrices",
    by_role: Mapping[str, float] | None = None,
    layouts: Sequence[Layout] = (),
) -> ParamGroups:
    """Return the groups of an optimizer: every trainable parameter is in exactly one of them.

    `decay` says what decays: "matrices" is every weight that a rule may draw, embeddings and
    positions too, but no bias, no norm and no structured tensor such as A_log; "not_embeddings"
    leaves out embeddings, positions and the unembedding as well; "all" leaves out nothing.
    `by_role` gives a role ("query") or a group of roles ("qk") a weight decay of its own.

    Tied weights are in one group, once. Frozen parameters are in none. Behind a weight that is
    computed, as by weight norm, all parameters take the role of the weight. A tensor whose role
    is not known follows its being a matrix or not, and where that does not tell, it is an error.

    >>> model = nn.Sequential(nn.Linear(64, 256), nn.LayerNorm(256), nn.Linear(256, 64))
    >>> groups = param_groups(model, weight_decay=0.1)
    >>> [(group["name"], group["weight_decay"], len(group["params"])) for group in groups]
    [('decayed', 0.1, 2), ('not decayed', 0.0, 4)]
    >>> optimizer = torch.optim.AdamW(groups, lr=3e-4)
    """
    rule = Decay(weight_decay, decay, by_role or {})
    tensors = [tensor for tensor in walk(model, layouts=layouts) if _trainable(tensor)]
    _refuse_what_no_group_holds(model, tensors)
    decayed = [rule.of_tensor(tensor.records) for tensor in tensors]
    refuse_troubles(decayed)
    _refuse_keys_without_effect(rule, tensors)
    groups: dict[tuple[str, float], dict[str, Any]] = {}
    rows: list[GroupRow] = []
    for tensor, found in zip(tensors, decayed, strict=True):
        name = found.group
        group = groups.setdefault(
            (name, found.weight_decay),
            {"name": name, "params": [], "weight_decay": found.weight_decay},
        )
        group["params"] += _trainable(tensor)
        rows.append(_row(tensor, found))
    return ParamGroups(list(groups.values()), tuple(rows))


def _row(tensor: ModelTensor, found: DecayedTensor) -> GroupRow:
    record = found.record
    roles = dict.fromkeys(part.role for part in tensor.records)
    return GroupRow(
        record.name,
        record.shape,
        ", ".join(roles),
        found.group,
        found.weight_decay,
        sum(parameter.numel() for parameter in _trainable(tensor)),
        record.aliases,
    )


def _trainable(tensor: ModelTensor) -> list[torch.Tensor]:
    """Return the parameters that an optimizer moves for this tensor."""
    own = [tensor.tensor] if tensor.through is None else tensor.through.behind()
    return [parameter for parameter in own if parameter.requires_grad]


def _named(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return every trainable parameter once, by the first of its names."""
    prefix = wrapper_prefix(model)
    return {
        canonical_name(name, prefix=prefix): parameter
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }


def _refuse_what_no_group_holds(model: nn.Module, tensors: Sequence[ModelTensor]) -> None:
    """Refuse models whose parameters are not the tensors that the walk found."""
    held = {id(parameter) for tensor in tensors for parameter in _trainable(tensor)}
    named = _named(model)
    if not named:
        raise InputError("no parameter of the model is trainable: requires_grad is False of all")
    for name, parameter in named.items():
        if type(parameter).__name__ == "FlatParameter":
            raise InputError(
                f"{name!r} is many parameters in one: make the groups before FSDP flattens them, "
                "or use fully_shard, which leaves them apart"
            )
        if id(parameter) not in held:
            raise InputError(
                f"{name!r} shares its values with another parameter, and an optimizer would move "
                "them twice: tie them, as in b.weight = a.weight"
            )


def _refuse_keys_without_effect(rule: Decay, tensors: Sequence[ModelTensor]) -> None:
    """Refuse a weight decay that is given for a role which no tensor has."""
    roles = {role for tensor in tensors for part in tensor.records for role in part.roles}
    used = {rule.key_of(role) for role in roles}
    for key in rule.by_role:
        if key not in used:
            raise InputError(
                f"by_role names {key!r}, and no trainable tensor of the model has that role: "
                f"expected some of {', '.join(sorted(roles))}"
            )


def optimizer_findings(
    model: nn.Module, optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer]
) -> list[Finding]:
    """Return what is wrong with an optimizer's groups: parameters in none (IR108) or two (IR109).

    Several optimizers of one model are taken together.

    >>> model = nn.Linear(4, 2)
    >>> [str(found) for found in optimizer_findings(model, torch.optim.SGD([model.weight]))]
    ['IR108 bias: in no group of the optimizer, and so never trained']
    """
    optimizers = optimizer if isinstance(optimizer, Sequence) else (optimizer,)
    times: dict[object, int] = {}
    for one in optimizers:
        if not hasattr(one, "param_groups"):
            raise InputError(f"optimizer is {type(one).__name__}: expected a torch.optim.Optimizer")
        # A wrapper such as accelerate's shows the groups of what it wraps.
        for group in one.param_groups:
            for parameter in group["params"]:
                key = _values(parameter)
                times[key] = times.get(key, 0) + 1
    named = _named(model)
    none = tuple(name for name, p in named.items() if _values(p) not in times)
    twice = tuple(name for name, p in named.items() if times.get(_values(p), 0) > 1)
    found: list[Finding] = []
    if none:
        found.append(Finding("IR108", none, "in no group of the optimizer, and so never trained"))
    if twice:
        message = "in two groups of the optimizer, and so moved and decayed twice a step"
        found.append(Finding("IR109", twice, message))
    return found


def _values(parameter: torch.Tensor) -> object:
    """Return what two parameters of the same values have in common."""
    if type(parameter) not in (nn.Parameter, torch.Tensor) or not parameter.numel():
        return id(parameter)
    return parameter.untyped_storage()._cdata, parameter.storage_offset(), tuple(parameter.shape)

"""What an adapter says of one tensor: the words between a framework and a rule."""

from __future__ import annotations

import math
from dataclasses import dataclass

from initrate.errors import InputError
from initrate.rule._checks import whole_number
from initrate.rule._roles import ROLES, check_role
from initrate.rule._slice import Slice

DENSE_ROLES = (
    "query",
    "key",
    "value",
    "attention_output",
    "mlp_in",
    "mlp_gate",
    "mlp_out",
    "unembedding",
    "router",
    "linear",
)
"""What a linear map of an unknown part of a model may be."""


@dataclass(frozen=True, slots=True)
class WeightRecord:
    """One tensor of a model, or one part of a fused tensor, as its adapter knows it.

    `roles` has one role where it is known, several where it is one of these, none where nothing
    is known. A record with `keep`, `zero` or `refuse` says why in these words.

    >>> record = WeightRecord("h.0.mlp.c_fc.weight", (64, 256), ("mlp_in",), d_in=64)
    >>> record.size
    16384
    """

    name: str
    """Canonical: wrappers such as a compiled module are stripped from it."""
    shape: tuple[int, ...]
    """Of the whole tensor."""
    roles: tuple[str, ...] = ()
    d_in: int | None = None
    """How many inputs one output adds up; of a bias: that of its weight; of a table: its width."""
    d_out: int | None = None
    """How many outputs one input feeds, where it is known: what is taken for d_in by mistake."""
    d_model: int | None = None
    """The width of the residual stream that the tensor reads or writes, where it is known."""
    rows: int | None = None
    """Of a table: how many rows it has."""
    n_layers: int | None = None
    """How many layers the stack has that the tensor is in."""
    part: str = ""
    """The name of the part of a fused tensor."""
    where: Slice | None = None
    aliases: tuple[str, ...] = ()
    """Further names of the same storage."""
    of: str = ""
    """Of a bias: the key of its weight."""
    eps: float | None = None
    """Of a norm: what it adds to the variance."""
    padding: int | None = None
    """Of a table: the row of the padding token, which stays zero."""
    keep: str = ""
    zero: str = ""
    refuse: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError(f"tensor name is {self.name!r}: expected a name")
        for role in self.roles:
            check_role(role)
        for word in ("d_in", "d_out", "d_model", "rows", "n_layers"):
            found = getattr(self, word)
            if found is not None:
                whole_number(f"{word} of {self.name!r}", found, least=1)
        if self.where is not None:
            self.where.shape(self.shape)

    @property
    def part_shape(self) -> tuple[int, ...]:
        """The shape of the part, or of the whole tensor."""
        return self.shape if self.where is None else self.where.shape(self.shape)

    @property
    def size(self) -> int:
        """The number of values of the part."""
        return math.prod(self.part_shape)

    @property
    def key(self) -> str:
        """What keys the random numbers, and names the row in tables."""
        return f"{self.name}#{self.part}" if self.part else self.name

    @property
    def role(self) -> str:
        """The role, or the roles it may have, for people: `query|key|value`, `linear?`, `?`."""
        if set(self.roles) == set(DENSE_ROLES):
            return "dense?"
        return "|".join(sorted(self.roles, key=ROLES.index)) or "?"

"""Roles: what a weight does in its model, and the groups that options may name instead."""

from __future__ import annotations

from initrate.errors import InputError, unknown

ROLES: tuple[str, ...] = (
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
    "router",
    "convolution",
    "linear",
    "norm",
    "bias",
    "structured",
)
"""Every role a tensor can have; `linear` is a map with another part: a head, a pooler, a projection
between two parts of a model. Roles are never guessed from a shape."""

ROLE_GROUPS: dict[str, tuple[str, ...]] = {
    "embedding": ("token_embedding",),
    "position": ("position",),
    "qk": ("query", "key"),
    "vo": ("value", "attention_output"),
    "mlp": ("mlp_in", "mlp_gate", "mlp_out"),
    "unembedding": ("unembedding",),
}
"""Names that options accept for several roles at once; a role given by itself wins."""

KEPT_ROLES = ("norm", "structured")
"""Never drawn: gains of norms, and tensors whose values are a structure of their own."""

WEIGHT_ROLES = tuple(role for role in ROLES if role not in (*KEPT_ROLES, "bias"))
"""The roles that gamma acts on unless the rule says otherwise."""

EMBEDDING_ROLES = ("token_embedding", "position")
"""Tables of rows that are looked up: their d_in is a choice of the rule."""

RESIDUAL_ROLES = ("attention_output", "mlp_out")
"""The maps that write into the residual stream: twice a layer."""


def check_role(role: str) -> str:
    """Return the role itself; a name that is no role is an error.

    >>> check_role("query")
    'query'
    """
    if not isinstance(role, str) or role not in ROLES:
        raise unknown("role", role, ROLES)
    return role


def check_option_key(option: str, key: object) -> str:
    """Return the key of a by-role option; it must be a role or group that can be drawn."""
    names = dict.fromkeys((*ROLE_GROUPS, *ROLES))
    if not isinstance(key, str) or key not in names:
        raise unknown(f"role in {option}", key, names)
    if key in KEPT_ROLES:
        raise InputError(
            f"rule {option} names the role {key!r}: its tensors are always kept; leave it out"
        )
    return key


def group_of(role: str) -> str | None:
    """Return the group that holds the role, or None.

    >>> group_of("key")
    'qk'
    """
    return next((group for group, roles in ROLE_GROUPS.items() if role in roles), None)

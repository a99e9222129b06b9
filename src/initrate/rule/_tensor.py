"""One tensor of a model, and the values a rule gives it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from initrate.errors import InputError
from initrate.rule._checks import whole_number
from initrate.rule._draws import Keep, Uniform, Zero
from initrate.rule._random import unit_normal, unit_uniform
from initrate.rule._roles import EMBEDDING_ROLES, check_role, group_of
from initrate.rule._rule import Rule

SMALLEST = float(np.finfo(np.float32).tiny)
# The largest unit normal is 6.66 (see _random), so ten std must fit into float32.
LARGEST = float(np.finfo(np.float32).max) / 10


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """What a rule must know of a tensor; `d_in` counts the inputs of one of its outputs.

    The d_in of a bias is that of its weight. `name` is the canonical name: it keys the random
    numbers, so that a wrapper around the model must be stripped from it.

    >>> TensorSpec("mlp.in.weight", (64, 128), "mlp_in", d_in=64, d_model=64).size
    8192
    """

    name: str
    shape: tuple[int, ...]
    role: str
    d_in: int
    d_model: int
    vocabulary: int | None = None
    weight_role: str | None = None
    """Of a bias: the role of its weight."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError(f"tensor name is {self.name!r}: expected a name")
        check_role(self.role)
        if self.weight_role is not None:
            check_role(self.weight_role)
        whole_number(f"d_in of {self.name!r}", self.d_in, least=1)
        whole_number(f"d_model of {self.name!r}", self.d_model, least=1)
        if self.vocabulary is not None:
            whole_number(f"vocabulary of {self.name!r}", self.vocabulary, least=1)
        object.__setattr__(self, "shape", tuple(self.shape))
        for length in self.shape:
            whole_number(f"a side of {self.name!r}", length, least=1)

    @property
    def size(self) -> int:
        """The number of values."""
        return math.prod(self.shape)


def tensor_d_in(rule: Rule, spec: TensorSpec) -> int:
    """Return what the rule takes for the d_in of this tensor.

    With `embedding_d_in="vocabulary"` the d_in of an embedding is the number of its rows: the
    vocabulary, or, for positions, the number of positions.

    >>> spec = TensorSpec("mlp.out.weight", (128, 64), "mlp_out", d_in=128, d_model=64)
    >>> tensor_d_in(Rule(), spec), tensor_d_in(Rule(d_in_by_role={"mlp": "d_model"}), spec)
    (128, 64)
    """
    if spec.role in EMBEDDING_ROLES:
        if rule.embedding_d_in == "d_model":
            return spec.d_model
        if spec.role == "token_embedding" and spec.vocabulary is not None:
            return spec.vocabulary
        return spec.shape[0]
    if spec.role in rule.d_in_by_role or group_of(spec.role) in rule.d_in_by_role:
        return spec.d_model
    return spec.d_in


def tensor_std(rule: Rule, spec: TensorSpec, *, n_layers: int | None = None) -> float | None:
    """Return the std that the rule means this tensor to have, or None where it is kept.

    >>> spec = TensorSpec("token_embedding.weight", (128, 64), "token_embedding", 64, 64, 128)
    >>> tensor_std(Rule(gamma=0.5), spec)
    0.125
    """
    return rule.std(spec.role, d_in=tensor_d_in(rule, spec), n_layers=n_layers)


def draw_tensor(
    rule: Rule, spec: TensorSpec, *, seed: int, n_layers: int | None = None
) -> NDArray[np.float32] | None:
    """Return the values the rule gives this tensor, or None where it is kept.

    The same seed and name give the same unit normals under every rule: gamma changes their
    factor alone, so that models that differ in gamma are paired.

    >>> spec = TensorSpec("mlp.in.weight", (64, 128), "mlp_in", d_in=64, d_model=64)
    >>> small, large = (draw_tensor(Rule(gamma=g), spec, seed=0) for g in (1.0, 0.5))
    >>> bool((small * 8 == large).all())
    True
    """
    draw = rule.draw(spec.role)
    if isinstance(draw, Keep):
        return None
    if isinstance(draw, Zero):
        return np.zeros(spec.shape, dtype=np.float32)
    factor = (
        draw.bound_at(d_in=tensor_d_in(rule, spec))
        if isinstance(draw, Uniform)
        else draw.std_at(d_in=tensor_d_in(rule, spec))
    ) / rule.residual_divisor(spec.role, n_layers=n_layers)
    if not SMALLEST <= factor <= LARGEST:
        raise InputError(
            f"{spec.name!r} would be drawn with a std of about {factor:.1e}, which float32 cannot "
            "hold: give a gamma nearer to 0.5"
        )
    unit = unit_uniform if isinstance(draw, Uniform) else unit_normal
    values = unit(seed, spec.name, spec.size).astype(np.float64) * factor
    return values.astype(np.float32).reshape(spec.shape)

"""What the operations of torch do with their operands: which axes they add up.

A name is that of an ATen operation without its overload. What stands in no table here is not
understood, and a parameter that comes to it is lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Product:
    """An operand of a product: the axes that are added up, and those of independent copies."""

    operand: int
    contracted: tuple[int, ...]
    copies: tuple[int, ...] = ()
    divisor: int = 1
    """How many times more places the axes have than one output adds up."""


def _pair(first: int, rank: int) -> tuple[Product, Product]:
    """Return the operands of [.., n, k] @ [.., k, m]."""
    copies = tuple(range(rank - 2))
    return Product(first, (rank - 1,), copies), Product(first + 1, (rank - 2,), copies)


def _convolution(args: Sequence[Any]) -> tuple[Product, ...]:
    weight, stride, transposed, groups = args[1], args[3], args[6], args[8]
    kernel = tuple(range(2, weight.dim()))
    if not transposed:
        return (Product(1, (1, *kernel)),)
    # One output adds up the inputs of one group, at every stride-th place of the kernel.
    steps = list(stride) * (len(kernel) // len(stride))
    return (Product(1, (0, *kernel), divisor=groups * math.prod(steps)),)


def _trilinear(args: Sequence[Any]) -> tuple[Product, ...]:
    """Return the operands of a sum over products of three, each with axes of size 1 put in."""
    found = []
    for operand in range(3):
        rank = args[operand].dim() + len(args[operand + 3])
        own = [axis for axis in range(rank) if axis not in args[operand + 3]]
        found.append(Product(operand, tuple(i for i, axis in enumerate(own) if axis in args[6])))
    return tuple(found)


def _linear(args: Sequence[Any]) -> tuple[Product, ...]:
    return Product(0, (args[0].dim() - 1,)), Product(1, (args[1].dim() - 1,))


def _grouped(args: Sequence[Any]) -> tuple[Product, ...]:
    first, second = args[0].dim(), args[1].dim()
    return (
        Product(0, (first - 1,), tuple(range(first - 2))),
        Product(1, (second - 2,), tuple(range(second - 2))),
    )


PRODUCTS: dict[str, Callable[[Sequence[Any]], tuple[Product, ...]]] = {
    "mm": lambda _: _pair(0, 2),
    "addmm": lambda _: _pair(1, 2),
    "_addmm_activation": lambda _: _pair(1, 2),
    "bmm": lambda _: _pair(0, 3),
    "baddbmm": lambda _: _pair(1, 3),
    "addbmm": lambda _: (Product(1, (0, 2)), Product(2, (0, 1))),
    "mv": lambda _: (Product(0, (1,)), Product(1, (0,))),
    "addmv": lambda _: (Product(1, (1,)), Product(2, (0,))),
    "dot": lambda _: (Product(0, (0,)), Product(1, (0,))),
    "vdot": lambda _: (Product(0, (0,)), Product(1, (0,))),
    "linear": _linear,
    "_grouped_mm": _grouped,
    "convolution": _convolution,
    "_trilinear": _trilinear,
}
"""Operations that add up products, and which axes of which operands."""

TABLES = {"embedding": 0, "_embedding_bag": 0, "_embedding_bag_forward_only": 0}
"""Operations that look rows up, and which operand is the table."""

NORMS = frozenset(
    """
    native_layer_norm native_batch_norm native_group_norm _fused_rms_norm _native_batch_norm_legit
    _native_batch_norm_legit_no_training cudnn_batch_norm miopen_batch_norm batch_norm_elemt
    """.split()
)
"""Norms: their gain and bias act place by place."""

COPIES = frozenset(
    """
    clone _to_copy contiguous copy lift_fresh lift_fresh_copy flip alias_copy detach_copy
    _conj_physical
    """.split()
)
"""Operations that give the same values in a new storage."""

CHANGES = frozenset(
    """
    _softmax _log_softmax _safe_softmax tril triu bernoulli native_dropout _weight_norm_interface
    """.split()
)
"""Operations that change values and leave the axes as they are, beside those that work by place."""

PLACED = frozenset(
    """
    index_put index_put_ _index_put_impl_ scatter scatter_ masked_scatter masked_scatter_
    slice_scatter select_scatter index_add index_add_ scatter_add scatter_add_ index_copy
    index_copy_
    """.split()
)
"""Operations that put values at some places of another tensor."""

FORMS = frozenset(
    """
    empty_like zeros_like ones_like full_like rand_like randn_like new_empty new_zeros new_ones
    new_full new_empty_strided is_same_size
    """.split()
)
"""Operations that read no values."""


def by_place(operation: Any) -> bool:
    """Return whether an operation works on each place by itself, with broadcasting."""
    return torch.Tag.pointwise in operation.tags


def name_of(operation: Any) -> str:
    """Return the name of an operation without its namespace and overload: `mm`."""
    return operation._schema.name.rpartition("::")[2]

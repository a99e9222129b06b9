"""What cannot be written is refused by name, before any value is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from initrate.errors import InputError
from initrate.frameworks.torch._measure import is_plain
from initrate.frameworks.torch._memory import refuse_lost, refuse_negated, refuse_read_only
from initrate.frameworks.torch._sharded import is_sharded, refuse_placements
from initrate.frameworks.torch._walk import ModelTensor
from initrate.measure import largest_expected
from initrate.rule import Plan, PlanRow

WRITTEN = ("draw", "zero")
_TYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)

TensorRows = list[tuple[ModelTensor, tuple[PlanRow, ...]]]
"""The tensors of a model, each with its rows of the plan."""


def tensor_rows(plan: Plan, tensors: Iterable[ModelTensor]) -> TensorRows:
    """Return the tensors with their rows of the plan."""
    rows = iter(plan.rows)
    return [(tensor, tuple(next(rows) for _ in tensor.records)) for tensor in tensors]


def is_written(rows: Iterable[PlanRow]) -> bool:
    """Return whether any value of a tensor is given to it by the plan."""
    return any(row.action in WRITTEN and row.size for row in rows)


def refuse_lazy(model: nn.Module) -> None:
    """Refuse a model with parameters that have no shape yet."""
    for name, parameter in model.named_parameters():
        if is_lazy(parameter):
            raise InputError(f"{name!r} has no shape yet: run the model once before apply")


def refuse_unwritable(pairs: TensorRows, *, materialize: bool) -> None:
    """Refuse what cannot hold the values of its plan."""
    seen: set[str] = set()
    for tensor, rows in pairs:
        name = rows[0].record.name
        if name in seen:
            raise InputError(f"two tensors go by the name {name!r}: rename one of their modules")
        seen.add(name)
        if is_written(rows):
            _refuse_kind(name, tensor)
            if not is_sharded(tensor.tensor):
                refuse_lost(name, tensor.tensor)
                refuse_negated(name, tensor.tensor)
            _refuse_place(name, tensor.tensor, materialize=materialize)
            for row in rows:
                _refuse_size(row, tensor.tensor.dtype)
    refuse_read_only(
        (rows[0].record.name, tensor.tensor)
        for tensor, rows in pairs
        if is_written(rows) and not is_sharded(tensor.tensor) and not tensor.tensor.is_meta
    )


def _refuse_kind(name: str, found: ModelTensor) -> None:
    tensor = found.tensor
    if tensor.dtype not in _TYPES or tensor.layout != torch.strided:
        raise InputError(
            f"{name!r} holds {tensor.dtype} in the layout {tensor.layout}: expected dense numbers "
            "of float16, bfloat16, float32 or float64; draw before it is converted"
        )
    refuse_placements(name, tensor)
    if is_sharded(tensor):
        if found.through is not None:
            raise InputError(
                f"{name!r} is computed from parameters that are sharded: apply before sharding"
            )
    elif not is_plain(tensor):
        raise InputError(
            f"{name!r} is a {type(tensor).__name__}: expected a plain tensor of torch; draw before "
            "it is converted"
        )


def _refuse_place(name: str, tensor: torch.Tensor, *, materialize: bool) -> None:
    if tensor.is_inference():
        raise InputError(
            f"{name!r} is read-only: it was made in inference mode; build the model outside of it"
        )
    if tensor.is_meta and not materialize:
        raise InputError(
            f"{name!r} is on the meta device and has no values: give materialize='cpu', or "
            "another device, or take plan() alone"
        )
    # From the smallest step on, each axis has to step over all that lies within it.
    reach = 0
    for step, side in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if side > 1:
            if step <= reach:
                raise InputError(
                    f"{name!r} holds one value at several places (its strides are "
                    f"{tensor.stride()}): clone it, so that each has its own"
                )
            reach += step * (side - 1)


def _refuse_size(row: PlanRow, dtype: torch.dtype) -> None:
    """Refuse a std for which the type has no full precision."""
    if row.action != "draw" or not row.size:
        return
    assert row.std is not None
    limits = torch.finfo(dtype)
    if row.std < limits.smallest_normal or row.std * largest_expected(row.size) > limits.max:
        raise InputError(
            f"{row.name!r} would be drawn with std {row.std:.3g}, which {dtype} cannot hold (from "
            f"{limits.smallest_normal:.3g} to {limits.max:.3g}): draw in float32, then convert"
        )


def refuse_unscalable(pairs: Sequence[PlanRow], constant: Sequence[bool]) -> None:
    """Refuse to multiply values that are all zero, or all one."""
    for row, same in zip(pairs, constant, strict=True):
        if same:
            raise InputError(
                f"{row.name!r} is constant: it cannot be rescaled to a std; draw it (mode='draw')"
            )

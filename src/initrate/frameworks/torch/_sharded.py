"""Tensors that are spread over processes: which region lies here, and the moments of the whole."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard

import torch
from torch import nn

from initrate.errors import InputError
from initrate.measure import Moments

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


def is_sharded(tensor: torch.Tensor) -> TypeGuard[DTensor]:
    """Return whether the tensor is spread over processes, as FSDP2 and DTensor do."""
    # Where nobody has imported it, no tensor is one, and its import costs time.
    if "torch.distributed.tensor" not in sys.modules:
        return False
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)


def local_region(tensor: torch.Tensor) -> tuple[torch.Tensor, tuple[int, ...], tuple[int, ...]]:
    """Return the values that lie here, the shape of the whole tensor, and the offset of the region.

    >>> values, whole, offset = local_region(torch.zeros(2, 3))
    >>> whole, offset
    ((2, 3), (0, 0))
    """
    if not is_sharded(tensor):
        return tensor, tuple(tensor.shape), (0,) * tensor.dim()
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    shape, offset = compute_local_shape_and_global_offset(
        tensor.shape, tensor.device_mesh, tensor.placements
    )
    with torch.no_grad():
        local = tensor.to_local().detach()
    if tuple(local.shape) != tuple(shape):
        # A process without rows holds an empty tensor of another shape.
        assert local.numel() == 0, (local.shape, shape)
        local = local.reshape(tuple(shape))
    return local, tuple(tensor.shape), tuple(offset)


def refuse_gathered(model: nn.Module) -> None:
    """Refuse wrappers that hold parameters in another form than the model's own."""
    for name, module in model.named_modules():
        names = {base.__name__ for base in type(module).__mro__}
        if "FullyShardedDataParallel" in names:
            found = repr(name) if name else "the model"
            raise InputError(
                f"{found} is wrapped by FullyShardedDataParallel, which flattens its parameters: "
                "apply before wrapping, or shard by fully_shard"
            )
    for name, parameter in model.named_parameters():
        if hasattr(parameter, "ds_id"):
            raise InputError(
                f"{name!r} is partitioned by DeepSpeed: apply before it is, or inside of "
                "deepspeed.zero.GatheredParameters"
            )


def refuse_placements(name: str, tensor: torch.Tensor) -> None:
    """Refuse a sharded tensor whose shards are not plain regions of the whole."""
    if not is_sharded(tensor):
        return
    for placement in tensor.placements:
        kind, sides = type(placement).__name__, tensor.device_mesh.shape
        axis = getattr(placement, "dim", None)
        over = [
            n
            for n, p in zip(sides, tensor.placements, strict=True)
            if getattr(p, "dim", None) == axis
        ]
        # Shards of shards are one region each only where they are all of one size.
        even = isinstance(axis, int) and tensor.shape[axis] % math.prod(over) == 0
        if kind not in ("Shard", "Replicate") and not (kind == "_StridedShard" and even):
            raise InputError(
                f"{name!r} is placed as {placement}: expected Shard or Replicate; redistribute it "
                "before apply"
            )


def settle(model: nn.Module) -> None:
    """Free what a forward pass has left gathered, so that values are written into the shards."""
    if "torch.distributed.fsdp" in sys.modules:
        from torch.distributed.fsdp import FSDPModule

        for module in model.modules():
            if isinstance(module, FSDPModule):
                module.reshard()


def add_up(tensors: Sequence[torch.Tensor], found: Sequence[Moments]) -> list[Moments]:
    """Return the moments of whole tensors from those of the regions that lie here.

    Every process has to call it for the same tensors, and gets the same numbers.
    """
    whole = list(found)
    groups: dict[tuple[object, tuple[int, ...]], list[int]] = {}
    for index, tensor in enumerate(tensors):
        if is_sharded(tensor):
            over = tuple(i for i, p in enumerate(tensor.placements) if not p.is_replicate())
            if over:
                groups.setdefault((tensor.device_mesh, over), []).append(index)
    for (_, over), indices in groups.items():
        first = tensors[indices[0]]
        assert is_sharded(first)
        mesh = first.device_mesh
        for dimension in over:
            reduced = _reduce(
                [whole[i] for i in indices], mesh.get_group(dimension), mesh.device_type
            )
            for i, moments in zip(indices, reduced, strict=True):
                whole[i] = moments
    return whole


def _reduce(found: Sequence[Moments], group: object, device: str) -> list[Moments]:
    """Return the moments summed over the processes of a group."""
    from torch import distributed

    sums = torch.tensor(
        [(float(m.size), m.total, m.squares) for m in found], dtype=torch.float64, device=device
    )
    ends = torch.tensor([(-m.lowest, m.highest) for m in found], dtype=torch.float64, device=device)
    distributed.all_reduce(sums, group=group)  # pyright: ignore[reportArgumentType]
    distributed.all_reduce(ends, op=distributed.ReduceOp.MAX, group=group)  # pyright: ignore[reportArgumentType]
    return [
        Moments(int(size), total, squares, -low, high)
        for (size, total, squares), (low, high) in zip(sums.tolist(), ends.tolist(), strict=True)
    ]

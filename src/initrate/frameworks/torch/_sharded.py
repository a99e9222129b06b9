"""Tensors that are spread over processes: which region of the whole this process holds."""

from __future__ import annotations

import sys

import torch


def local_region(tensor: torch.Tensor) -> tuple[torch.Tensor, tuple[int, ...], tuple[int, ...]]:
    """Return the values that lie here, the shape of the whole tensor, and the offset of the region.

    >>> values, whole, offset = local_region(torch.zeros(2, 3))
    >>> whole, offset
    ((2, 3), (0, 0))
    """
    # Where nobody has imported it, no tensor is one, and its import costs time.
    if "torch.distributed.tensor" in sys.modules:
        from torch.distributed.tensor import DTensor
        from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

        if not isinstance(tensor, DTensor):
            return tensor, tuple(tensor.shape), (0,) * tensor.dim()
        shape, offset = compute_local_shape_and_global_offset(
            tensor.shape, tensor.device_mesh, tensor.placements
        )
        local = tensor.to_local()
        if tuple(local.shape) != tuple(shape):
            local = local.reshape(tuple(shape))
        return local, tuple(tensor.shape), tuple(offset)
    return tensor, tuple(tensor.shape), (0,) * tensor.dim()

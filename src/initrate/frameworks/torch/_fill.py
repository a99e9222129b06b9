"""Values into tensors: window by window, of a whole tensor, a part of it, or one shard."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from initrate.rule import BLOCK, Slice

Draw = Callable[[int, int], NDArray[np.float32]]
"""(start, size) -> values, counted in the order of the part's shape."""
Job = tuple[torch.Tensor, int]
"""A piece of a tensor, and the place of its first value."""


def part_view(tensor: torch.Tensor, where: Slice | None) -> torch.Tensor:
    """Return the view of a part, in the shape that the part has by itself."""
    if where is None:
        return tensor
    split = tensor.unflatten(
        where.axis, where.split(tuple(tensor.shape))[where.axis : where.axis + 2]
    )
    return split.narrow(where.axis + 1, where.start, where.length)


def pieces(
    view: torch.Tensor,
    start: int = 0,
    whole: Sequence[int] | None = None,
    offset: Sequence[int] | None = None,
) -> Iterator[Job]:
    """Yield pieces of at most a block that lie without a gap in the order of the whole.

    `view` is the region at `offset` of a tensor of the shape `whole`; by default all of it.
    """
    whole = tuple(view.shape) if whole is None else tuple(whole)
    offset = (0,) * len(whole) if offset is None else tuple(offset)
    if view.numel() == 0:
        return
    if not whole:
        yield view, start
        return
    inner = math.prod(whole[1:])
    start += offset[0] * inner
    if tuple(view.shape[1:]) == whole[1:]:
        yield from _run(view, start, inner)
        return
    for i in range(view.shape[0]):
        yield from pieces(view[i], start + i * inner, whole[1:], offset[1:])


def _run(view: torch.Tensor, start: int, inner: int) -> Iterator[Job]:
    """Yield the pieces of a region that has no gap."""
    if view.is_contiguous():
        flat = view.view(-1)
        # The windows end where the blocks of the draw do, so that no block is made twice.
        at = 0
        while at < flat.numel():
            size = min(BLOCK - (start + at) % BLOCK, flat.numel() - at)
            yield flat.narrow(0, at, size), start + at
            at += size
        return
    rows = max(1, BLOCK // inner)
    for row in range(0, view.shape[0], rows):
        block = view[row : row + rows]
        if rows == 1 and inner > BLOCK:
            yield from pieces(view[row], start + row * inner)
        else:
            yield block, start + row * inner


def remembered(draw: Draw) -> Draw:
    """Return the draw with its last blocks kept, for many small windows of a shard."""

    @lru_cache(maxsize=2)
    def block(index: int) -> NDArray[np.float32]:
        return draw(index * BLOCK, BLOCK)

    def window(start: int, size: int) -> NDArray[np.float32]:
        if size >= BLOCK // 4:
            return draw(start, size)
        first, inside = divmod(start, BLOCK)
        if inside + size <= BLOCK:
            return block(first)[inside : inside + size]
        return np.concatenate((block(first)[inside:], block(first + 1)[: inside + size - BLOCK]))

    return window


def write_piece(piece: torch.Tensor, values: NDArray[np.float32]) -> bool:
    """Write the values, rounded to the tensor's type; return whether any of them was another."""
    drawn = torch.from_numpy(values).view(piece.shape).to(piece.dtype)
    if piece.device.type != "cpu":
        drawn = drawn.to(piece.device)
    # Equal values are not written, so that the same rule and seed again changes nothing.
    if torch.equal(piece, drawn):
        return False
    piece.copy_(drawn)
    return True

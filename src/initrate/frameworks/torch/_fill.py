"""Values into tensors: window by window, of a whole tensor, a part of it, or one shard."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from initrate.rule import BLOCK, Slice

WINDOW = BLOCK
"""How many values are drawn at once. With fewer, the threads would spend their time in handing over
to each other."""

Draw = Callable[[int, int], NDArray[np.float32]]
"""(start, size) -> values, counted in the order of the part's shape."""


@dataclass(frozen=True, slots=True)
class Region:
    """A box of a part that lies here: its values, the shape of the part, the box's offset in it."""

    view: torch.Tensor
    whole: tuple[int, ...]
    offset: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A few values of a region, and the window of the part that has them."""

    view: torch.Tensor
    start: int
    drawn: tuple[int, ...]
    """The shape of the window: that of the view, or larger where a shard has columns alone."""
    offset: tuple[int, ...]
    """Where in the window the view lies."""

    def cut(self, values: torch.Tensor) -> torch.Tensor:
        """Return the values of the window that belong to the view, in its shape."""
        box = values.view(self.drawn)
        for axis, (start, side) in enumerate(zip(self.offset, self.view.shape, strict=True)):
            box = box.narrow(axis, start, side)
        return box


def regions(
    local: torch.Tensor, whole: Sequence[int], offset: Sequence[int], where: Slice | None
) -> Iterator[Region]:
    """Yield the boxes of a part in the region of a tensor that starts at `offset`.

    >>> tensor = torch.arange(12).view(6, 2)
    >>> query = Slice(axis=0, start=0, length=2, period=3)
    >>> [r.view.tolist() for r in regions(tensor[1:5], (6, 2), (1, 0), query)]
    [[[[2, 3]]], [[[6, 7], [8, 9]]]]
    """
    whole, offset = tuple(whole), tuple(offset)
    if local.numel() == 0:
        return
    if where is None:
        yield Region(local, whole, offset)
        return
    axis, shape = where.axis, where.shape(whole)
    period = where.period or whole[axis]
    first, side = offset[axis], local.shape[axis]

    def at(index: int, inside: int) -> tuple[int, ...]:
        return (*offset[:axis], index, inside, *offset[axis + 1 :])

    if first % period == 0 and side % period == 0:
        split = local.unflatten(axis, (side // period, period))
        yield Region(
            split.narrow(axis + 1, where.start, where.length), shape, at(first // period, 0)
        )
        return
    # The region cuts through a block, so each of its blocks is a box by itself.
    for index in range(first // period, -(-(first + side) // period)):
        start = index * period + where.start
        low, high = max(first, start), min(first + side, start + where.length)
        if low < high:
            box = local.narrow(axis, low - first, high - low).unsqueeze(axis)
            yield Region(box, shape, at(index, low - start))


def pieces(region: Region) -> Iterator[Piece]:
    """Yield the pieces of a region, none with a window larger than WINDOW values."""
    yield from _pieces(region.view, 0, region.whole, region.offset)


def _pieces(
    view: torch.Tensor, start: int, whole: tuple[int, ...], offset: tuple[int, ...]
) -> Iterator[Piece]:
    if view.numel() == 0:
        return
    if not whole:
        yield Piece(view, start, (), ())
        return
    inner = math.prod(whole[1:])
    start += offset[0] * inner
    if tuple(view.shape[1:]) == whole[1:] and view.is_contiguous():
        flat, at = view.view(-1), 0
        # The windows end at multiples of their size, so that no chunk of the draw is made twice.
        while at < flat.numel():
            size = min(WINDOW - (start + at) % WINDOW, flat.numel() - at)
            yield Piece(flat.narrow(0, at, size), start + at, (size,), (0,))
            at += size
    elif inner > WINDOW:
        for i in range(view.shape[0]):
            yield from _pieces(view[i], start + i * inner, whole[1:], offset[1:])
    else:
        rows = WINDOW // inner
        for row in range(0, view.shape[0], rows):
            block = view[row : row + rows]
            drawn = (block.shape[0], *whole[1:])
            yield Piece(block, start + row * inner, drawn, (0, *offset[1:]))


def write_piece(piece: Piece, draw: Draw) -> bool:
    """Write the values, rounded to the tensor's type; return whether any of them was another."""
    values = torch.from_numpy(draw(piece.start, math.prod(piece.drawn)))
    drawn = piece.cut(values)
    if piece.view.dtype != drawn.dtype or piece.view.device.type != "cpu":
        drawn = drawn.to(device=piece.view.device, dtype=piece.view.dtype)
    # Equal values are not written, so that the same rule and seed again changes nothing. The first
    # ones mostly tell, and are cheap to ask.
    first = (0,) * (piece.view.dim() - 1) + (slice(64),)
    same_start = not piece.view.dim() or torch.equal(piece.view[first], drawn[first])
    if same_start and torch.equal(piece.view, drawn):
        return False
    piece.view.copy_(drawn)
    return True

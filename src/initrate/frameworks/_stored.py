"""What the tensors of files measure: their moments, part by part, and a digest of their bytes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from initrate.frameworks._safetensors import StoredTensor, blocks, raw_blocks
from initrate.measure import Moments, moments
from initrate.measure._moments import NOTHING
from initrate.rule import Slice

_BLOCK = 1 << 18
"""Values that are in memory at once."""


def stored_moments(
    tensor: StoredTensor, parts: Sequence[Slice | None] = (None,)
) -> tuple[Moments, ...]:
    """Return the moments of each part of a stored tensor; the file is read once."""
    bands = [_band(tensor.shape, where) for where in parts]
    # Blocks of whole periods can be cut at once; a period that is longer is cut piece by piece.
    period = math.lcm(*(band[0] for band in bands)) if tensor.size else 1
    size = period * (_BLOCK // period) if period <= _BLOCK else _BLOCK
    found, at = [NOTHING] * len(parts), 0
    for block in blocks(tensor, size):
        for k, band in enumerate(bands):
            for piece in _cut(block, at, *band):
                found[k] += moments(piece)
        at += block.size
    return tuple(found)


def _band(shape: tuple[int, ...], where: Slice | None) -> tuple[int, int, int]:
    """Return how a part lies in the flat values: of every `period` values those in a band."""
    if where is None:
        return 1, 0, 1
    split = where.split(shape)
    inner = math.prod(shape[where.axis + 1 :])
    start = where.start * inner
    return max(1, split[where.axis + 1] * inner), start, start + where.length * inner


def _cut(
    block: NDArray[np.floating], at: int, period: int, first: int, last: int
) -> Iterator[NDArray[np.floating]]:
    """Yield the values of a block that are in the band; the block begins at the place `at`."""
    if first == 0 and last == period:
        yield block
    elif at % period == 0 and block.size % period == 0:
        yield block.reshape(-1, period)[:, first:last]
    else:
        for start in range(at - at % period, at + block.size, period):
            piece = block[max(0, start + first - at) : max(0, start + last - at)]
            if piece.size:
                yield piece


def digest(tensor: StoredTensor) -> str:
    """Return a digest of the type, the shape and the bytes of a stored tensor."""
    found = hashlib.sha256(f"{tensor.dtype} {tensor.shape}".encode())
    for raw in raw_blocks(tensor, 4 * _BLOCK):
        found.update(raw)
    return found.hexdigest()

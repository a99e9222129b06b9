"""Windows: every value of a region is written once, from its own place in the part."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from initrate.frameworks.torch import _fill
from initrate.frameworks.torch._fill import pieces, regions, write_piece
from initrate.rule import Slice


def places(start: int, size: int) -> NDArray[np.float32]:
    """Return the place of each value as its value."""
    return np.arange(start, start + size, dtype=np.float32)


def written(
    local: torch.Tensor, whole: tuple[int, ...], offset: tuple[int, ...], where: Slice | None
) -> int:
    """Write the places into a region; return how many values its pieces have."""
    count = 0
    for region in regions(local, whole, offset, where):
        for piece in pieces(region):
            assert math.prod(piece.drawn) <= _fill.WINDOW
            count += piece.view.numel()
            assert write_piece(piece, places)
    return count


def expected(whole: tuple[int, ...], where: Slice | None) -> torch.Tensor:
    """Return the whole tensor with the places of a part in it, and -1 elsewhere."""
    tensor = torch.full(whole, -1.0)
    if where is None:
        return torch.arange(math.prod(whole), dtype=torch.float32).view(whole)
    shape, axis = where.shape(whole), where.axis
    split = tensor.unflatten(axis, where.split(whole)[axis : axis + 2])
    values = torch.arange(math.prod(shape), dtype=torch.float32).view(shape)
    split.narrow(axis + 1, where.start, where.length).copy_(values)
    return tensor


PARTS = {
    "whole": ((7, 5), None),
    "whole of three sides": ((3, 4, 5), None),
    "block of rows": ((9, 4), Slice(0, 3, 3)),
    "block of columns": ((4, 9), Slice(1, 3, 3)),
    "rows by head": ((12, 3), Slice(0, 2, 2, 6)),
    "columns by head": ((3, 12), Slice(1, 4, 2, 6)),
    "middle side by head": ((2, 12, 3), Slice(1, 0, 4, 6)),
}


@pytest.mark.parametrize("window", [4, 16, 32_768])
@pytest.mark.parametrize("case", PARTS)
@pytest.mark.parametrize("axis", [0, 1])
def test_any_cut_of_a_tensor_gives_its_parts_the_places_of_the_whole(
    case: str, axis: int, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, where = PARTS[case]
    monkeypatch.setattr(_fill, "WINDOW", max(window, whole[-1]))
    side, right = whole[axis], expected(whole, where)
    for low in range(side):
        for high in range(low, side + 1):
            local = torch.full(whole, -1.0).narrow(axis, low, high - low)
            offset = tuple(low if i == axis else 0 for i in range(len(whole)))
            count = written(local, whole, offset, where)
            cut = right.narrow(axis, low, high - low)
            assert torch.equal(local, cut), (low, high)
            assert count == int((cut >= 0).sum())


def test_a_box_with_gaps_on_every_side_is_cut_out_of_its_windows() -> None:
    local = torch.zeros(2, 3, 2)
    written(local, (5, 7, 4), (2, 3, 1), None)
    right = torch.arange(140.0).view(5, 7, 4)[2:4, 3:6, 1:3]
    assert torch.equal(local, right)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(6, 5).t(),
        lambda: torch.zeros(4, 3, 2, 2).to(memory_format=torch.channels_last),
        lambda: torch.zeros(5, 12)[:, 2:8],
        lambda: torch.zeros(()),
        lambda: torch.zeros(0, 4),
    ],
    ids=["transposed", "channels last", "columns", "scalar", "empty"],
)
def test_values_are_counted_in_the_order_of_the_shape_whatever_the_strides(
    make: Callable[[], torch.Tensor],
) -> None:
    tensor = make()
    shape = tuple(tensor.shape)
    count = 0
    for region in regions(tensor, shape, (0,) * len(shape), None):
        for piece in pieces(region):
            write_piece(piece, lambda start, size: places(start + 1, size))
            count += piece.view.numel()
    assert count == tensor.numel()
    assert torch.equal(tensor, torch.arange(1.0, tensor.numel() + 1).view(shape))


def test_windows_of_a_large_row_end_where_the_chunks_of_the_draw_do() -> None:
    tensor = torch.zeros(2, 3 * _fill.WINDOW + 10)
    found = [
        (p.start, p.view.numel())
        for r in regions(tensor[1:], tuple(tensor.shape), (1, 0), None)
        for p in pieces(r)
    ]
    starts = [start % _fill.WINDOW for start, _ in found[1:]]
    assert found[0][0] == tensor.shape[1] and set(starts) == {0}
    assert sum(size for _, size in found) == tensor.shape[1]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_values_are_rounded_once_to_the_type_of_the_tensor(dtype: torch.dtype) -> None:
    tensor = torch.zeros(300, dtype=dtype)
    values = np.linspace(-1, 1, 300, dtype=np.float32)
    (region,) = regions(tensor, (300,), (0,), None)
    (piece,) = pieces(region)
    assert write_piece(piece, lambda start, size: values)
    assert torch.equal(tensor, torch.from_numpy(values).to(dtype))
    version = tensor._version
    assert not write_piece(piece, lambda start, size: values)
    assert tensor._version == version

"""Axes of views: what the strides say against where the values come from."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from initrate.frameworks.torch._trace_axes import (
    Digit,
    broadcast,
    digits_of,
    joined,
    laid_out,
    of_parameter,
)

SHAPES = [(24, 6), (6, 24), (4, 6, 6), (2, 72), (144,), (3, 4, 12), (1, 12, 12)]


@st.composite
def views(draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a tensor that counts its places, and a view of it by a few operations."""
    whole = torch.arange(144).reshape(draw(st.sampled_from(SHAPES)))
    view = whole
    for _ in range(draw(st.integers(0, 5))):
        axis = draw(st.integers(0, view.dim() - 1))
        side = view.shape[axis]
        way = draw(st.sampled_from(["swap", "split", "merge", "select", "narrow", "expand"]))
        if way == "swap":
            view = view.transpose(axis, draw(st.integers(0, view.dim() - 1)))
        elif way == "split" and side % 2 == 0:
            view = view.unflatten(axis, (2, -1))
        elif way == "merge" and axis + 1 < view.dim() and view.is_contiguous():
            view = view.flatten(axis, axis + 1)
        elif way == "select" and view.dim() > 1:
            view = view.select(axis, draw(st.integers(0, side - 1)))
        elif way == "narrow":
            start = draw(st.integers(0, side - 1))
            view = view.narrow(axis, start, draw(st.integers(1, side - start)))
        elif way == "expand":
            view = view[None].expand(2, *view.shape)
    return whole, view


@settings(max_examples=150, deadline=None)
@given(views())
def test_digits_name_the_axes_along_which_the_places_move(pair):
    whole, view = pair
    fines = of_parameter(whole.shape, whole.stride())
    try:
        digits = digits_of(fines, view.shape, view.stride(), int(view.storage_offset()))
    except ValueError:
        return  # Not understood is never wrong.
    assert digits is not None
    places = torch.stack(torch.unravel_index(view, whole.shape), -1)
    for axis, side in enumerate(view.shape):
        if side == 1:
            continue
        row = places.movedim(axis, 0).reshape(side, -1, whole.dim())
        moved = {int(k) for k in (row != row[:1]).flatten(0, 1).any(0).nonzero()}
        named = [part for part in digits[axis] if part.axis is not None and part.size > 1]
        assert moved == {part.axis for part in named}
        for own in moved:
            steps = len(set(row[:, 0, own].tolist()))
            assert steps == math.prod(part.size for part in named if part.axis == own)


def test_plain_views_are_understood():
    whole = torch.empty(12, 4)
    for view in (whole.t(), whole.view(3, 4, 4), whole[2:5, 1], whole.view(48), whole[::2]):
        fines = of_parameter(whole.shape, whole.stride())
        assert digits_of(fines, view.shape, view.stride(), int(view.storage_offset())) is not None


@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [((6,), (4,), 9), ((5,), (3,), 0), ((3, 3), (4, 3), 0)],
)
def test_views_across_axes_are_not_understood(shape, strides, offset):
    fines = of_parameter((6, 4), (4, 1))
    with pytest.raises(ValueError, match=r"axis|axes|stride"):
        digits_of(fines, shape, strides, offset)


def test_joined_tensors_are_told_apart_by_their_places():
    digits = ((Digit(2, 0),), (Digit(6, 1),))
    first = laid_out(joined(digits, 0, 0, 5), (6, 1))
    second = laid_out(joined(((Digit(3, 0),), (Digit(6, 1),)), 0, 2, 5), (6, 1))
    assert digits_of(first, (2, 6), (6, 1), 12) is None
    found = digits_of(second, (2, 6), (6, 1), 12)
    assert found is not None
    assert found[0][0].share == 2
    half = digits_of(first, (2, 6), (6, 1), 6)
    assert half is not None
    assert half[0][0].share == 1


def test_broadcast_axes_are_of_no_parameter():
    found = broadcast(((Digit(1, 0),), (Digit(6, 1),)), (1, 6), (2, 4, 6))
    assert [parts[0].axis for parts in found] == [None, None, 1]

"""Slices: where the parts of a fused tensor lie."""

from __future__ import annotations

import numpy as np
import pytest

from initrate.errors import InputError
from initrate.rule import Slice


def cut(values: np.ndarray, where: Slice) -> np.ndarray:
    """The values of a part, by the words of its docstring alone."""
    side = values.shape[where.axis]
    period = where.period or side
    places = [k for k in range(side) if where.start <= k % period < where.start + where.length]
    return values.take(places, axis=where.axis)


@pytest.mark.parametrize(
    ("where", "shape", "split", "part"),
    [
        (Slice(0, 0, 4), (12, 5), (1, 12, 5), (1, 4, 5)),
        (Slice(1, 4, 4), (3, 12), (3, 1, 12), (3, 1, 4)),
        (Slice(0, 2, 2, 6), (12, 5), (2, 6, 5), (2, 2, 5)),
        (Slice(1, 0, 3, 6), (2, 12, 5), (2, 2, 6, 5), (2, 2, 3, 5)),
        (Slice(0, 0, 7), (7,), (1, 7), (1, 7)),
    ],
)
def test_shapes(where: Slice, shape: tuple[int, ...], split: tuple, part: tuple):
    assert where.split(shape) == split
    assert where.shape(shape) == part
    values = np.arange(np.prod(shape)).reshape(shape)
    inside = slice(where.start, where.start + where.length)
    found = values.reshape(split)[(slice(None),) * (where.axis + 1) + (inside,)]
    assert found.shape == part
    assert found.ravel().tolist() == cut(values, where).ravel().tolist()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((-1, 0, 4), "slice axis is -1"),
        ((0, -1, 4), "slice start is -1"),
        ((0, 0, 0), "slice length is 0"),
        ((0, 0, 1.5), "slice length is 1.5"),
        ((0, True, 4), "slice start is True"),
        ((0, 4, 4, 6), "slice period is 6: expected at least start \\+ length, which is 8"),
    ],
)
def test_what_is_no_slice(arguments: tuple, words: str):
    with pytest.raises(InputError, match=words):
        Slice(*arguments)


@pytest.mark.parametrize(
    ("where", "shape"),
    [(Slice(2, 0, 4), (4, 4)), (Slice(0, 2, 4), (4, 4)), (Slice(0, 0, 2, 3), (8, 4))],
    ids=["no such axis", "beyond the end", "no whole periods"],
)
def test_what_does_not_fit(where: Slice, shape: tuple[int, ...]):
    with pytest.raises(InputError, match="slice"):
        where.shape(shape)

"""Records: what an adapter says of a tensor."""

from __future__ import annotations

import pytest

from initrate.errors import InputError
from initrate.rule import DENSE_ROLES, Slice, WeightRecord


def test_of_a_whole_tensor():
    record = WeightRecord("fc.weight", (64, 256), ("mlp_in",), d_in=64)
    assert (record.key, record.role, record.part_shape, record.size) == (
        "fc.weight",
        "mlp_in",
        (64, 256),
        16384,
    )


def test_of_a_part():
    record = WeightRecord("qkv", (192, 64), ("key",), part="key", where=Slice(0, 64, 64))
    assert (record.key, record.part_shape, record.size) == ("qkv#key", (1, 64, 64), 4096)


@pytest.mark.parametrize(
    ("roles", "shown"),
    [
        ((), "?"),
        (("query",), "query"),
        (("value", "query"), "query|value"),
        (DENSE_ROLES, "dense?"),
        (DENSE_ROLES[::-1], "dense?"),
    ],
)
def test_the_role_that_people_read(roles: tuple[str, ...], shown: str):
    assert WeightRecord("w", (4, 4), roles).role == shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": ""}, "tensor name is ''"),
        ({"name": 3}, "tensor name is 3"),
        ({"roles": ("qeury",)}, "did you mean 'query'"),
        ({"d_in": 0}, "d_in of 'w' is 0"),
        ({"d_in": 2.5}, "d_in of 'w' is 2.5"),
        ({"d_out": -1}, "d_out of 'w' is -1"),
        ({"rows": True}, "rows of 'w' is True"),
        ({"n_layers": 0}, "n_layers of 'w' is 0"),
        ({"where": Slice(0, 4, 4)}, "does not fit"),
    ],
)
def test_what_is_no_record(arguments: dict, words: str):
    with pytest.raises(InputError, match=words):
        WeightRecord(**{"name": "w", "shape": (4, 4)} | arguments)


def test_sizes_of_scalars_and_of_nothing():
    assert WeightRecord("a", ()).size == 1
    assert WeightRecord("b", (0, 4)).size == 0

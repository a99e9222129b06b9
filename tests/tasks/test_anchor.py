"""The frozen description of a task: the paper's numbers, round trips, bad input."""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from initrate.errors import InputError
from initrate.tasks import (
    AnchorTask,
    Task,
    baselines,
    lookup_note,
    loss_floors,
    task_fields,
    task_from_dict,
    unseen_rows,
    variant,
)
from initrate.tasks._maps import tables
from initrate.tasks._split import key_cells

# arXiv 2405.05409, eq. 1-2: row = first anchor, column = second anchor.
COMPOSITE_SHIFTS = [[10, 6, 3, -3], [6, 2, -1, -7], [3, -1, -4, -10], [-3, -7, -10, -16]]


def test_composite_shifts_of_the_paper() -> None:
    task = variant("without-34")
    for first in range(4):
        for second in range(4):
            shift = COMPOSITE_SHIFTS[first][second]
            assert task.answer(50, (first + 1, second + 1)) == 50 + shift


def test_main_set_up() -> None:
    task = variant("34-wrong")
    followed: Task = task
    assert followed == AnchorTask()
    assert task.answer(23, (1, 2)) == 29
    assert task.answer(40, (3, 4)) == 34
    assert task.answer(40, (4, 3)) == 30
    known = tables(task)
    assert (known.targets.min(), known.targets.max()) == (4, 109)
    assert [known.pairs[row] for row in known.unseen] == [(4, 3)]
    assert len(known.seen) == 15


def test_first_anchor_first() -> None:
    task = AnchorTask(anchors=(1, 2), maps=(lambda x: 119 - x, 1), unseen=(), overrides=())
    assert task.answer(30, (1, 2)) == 90
    assert task.answer(30, (2, 1)) == 88


@pytest.mark.parametrize(
    ("split_modulus", "n_training", "n_test"), [("code", 498, 62), ("paper", 480, 80)]
)
def test_sizes_of_the_split(split_modulus: str, n_training: int, n_test: int) -> None:
    training, test = key_cells(variant("34-wrong", split_modulus=split_modulus))
    assert (training.n_cells, test.n_cells) == (n_training, n_test)
    assert not set(zip(training.keys, training.positions, strict=True)) & set(
        zip(test.keys, test.positions, strict=True)
    )


def test_round_trip(task: AnchorTask) -> None:
    plain = json.loads(json.dumps(task.to_dict()))
    assert AnchorTask.from_dict(plain) == task
    assert task_from_dict(plain) == task
    assert hash(AnchorTask.from_dict(plain)) == hash(task)
    assert pickle.loads(pickle.dumps(task)) == task
    assert dataclasses.replace(task) == task
    assert set(task.to_dict()) | {"pool"} == set(task_fields())


def test_maps_may_be_given_in_any_form() -> None:
    table = {x: 119 - x for x in range(0, 130)}
    forms: list[Any] = [
        lambda x: 119 - x,
        table,
        {str(value): image for value, image in table.items()},
        sorted(table.items()),
        [[value, image] for value, image in table.items()],
    ]
    found = [AnchorTask(maps=(5, 1, form, -8), overrides=()) for form in forms]
    assert len({task.answer(33, (4, 3)) for task in found}) == 1
    assert found[1] == found[2] == found[3] == found[4]
    by_anchor = AnchorTask(maps={4: -8, 3: -2, 2: 1, 1: 5})
    assert by_anchor == AnchorTask()


def test_functions_are_stored_as_tables_of_what_reaches_them() -> None:
    asked: list[int] = []

    def double(x: int) -> int:
        asked.append(x)
        return 2 * x

    task = AnchorTask(
        key_low=20,
        key_high=40,
        anchors=(1, 2),
        maps=(double, 3),
        vocabulary=200,
        noise_high=60,
        unseen=(),
        overrides=(),
    )
    reached = {*range(20, 41), *range(23, 44), *range(40, 81, 2)}
    assert set(asked) == reached
    assert len(asked) == len(reached), "every value is asked once"
    (table, shift) = task.plain_maps
    assert shift == 3
    assert table == tuple((x, 2 * x) for x in sorted(reached))


def test_without_noise_the_length_follows() -> None:
    assert variant("34-wrong", noise=False).length == 3
    three = AnchorTask(n_anchors=3, key_low=30, noise=False, unseen=(), overrides=())
    assert three.length == 4


BAD: list[tuple[dict[str, Any], str]] = [
    ({"vocabulary": 109}, "answer 109, outside the vocabulary of 109: lower key_high or raise"),
    ({"key_low": 15}, "answer -1, outside the vocabulary of 128: raise key_low"),
    ({"key_high": 128}, "key range 20-128 leaves the vocabulary"),
    ({"noise_high": 500}, "noise range 20-500 leaves the vocabulary"),
    ({"key_low": 60, "key_high": 50}, "key range is 60-50"),
    ({"noise_low": 3}, "anchor 3 lies in the noise range"),
    ({"key_low": 4}, "anchor 4 lies in the key range"),
    ({"length": 2}, "task length is 2: a key and 2 anchors need at least 3"),
    ({"length": 0}, "task length is 0"),
    ({"length": True}, "task length is True"),
    ({"length": "9"}, "task length is '9'"),
    ({"n_anchors": 0}, "n_anchors is 0"),
    ({"anchors": ()}, "anchors are ()"),
    ({"anchors": (1, 1, 2, 3)}, "expected each token once"),
    ({"anchors": (1, 2, 3)}, "found 4 for 3 anchors"),
    ({"anchors": (1, 2, 3, 128)}, "anchor 128 leaves the vocabulary"),
    ({"anchors": "1234"}, "anchors are '1234'"),
    ({"maps": (5, 1, -2)}, "found 3 for 4 anchors"),
    ({"maps": (5, 1, -2, "x-8")}, "map of anchor 4 is 'x-8'"),
    ({"maps": (5, 1, -2, 0.5)}, "map of anchor 4 is 0.5"),
    ({"maps": (5, 1, -2, True)}, "map of anchor 4 is True"),
    ({"maps": (5, 1, -2, {20: 30})}, "map of anchor 4 says nothing of"),
    ({"maps": (5, 1, -2, {})}, "map of anchor 4 is {}"),
    ({"maps": (5, 1, -2, [(20, 1), (20, 2)])}, "gives 20 two images"),
    ({"maps": (5, 1, -2, lambda x: x / 2)}, "map of anchor 4 turns"),
    ({"maps": (5, 1, -2, lambda: 1)}, "map of anchor 4 fails at 20 (TypeError: "),
    (
        {"maps": (5, lambda x: 1 // (x - 25), -2, -8)},
        "map of anchor 2 fails at 25 (ZeroDivisionError: ",
    ),
    ({"maps": (5, 1, -2, {}.__getitem__)}, "map of anchor 4 fails at 20 (KeyError: 20)"),
    ({"maps": (5, 1, -2, lambda x: int("a\nb"))}, "map of anchor 4 fails at 20 (ValueError: "),
    ({"maps": (5, 1, -2, lambda x: np.eye(9))}, "map of anchor 4 turns 20 into array("),
    ({"maps": (5, 1, -2, np.eye(9))}, "map of anchor 4 is array("),
    ({"maps": np.eye(9)}, "task maps are array("),
    ({"anchors": np.eye(9)}, "task anchors are array("),
    ({"overrides": {"3,4": lambda: 1}}, "map of pair 3,4 fails at 20 (TypeError: "),
    ({"maps": (5, 1, -2, 10**12)}, "expected at most 1000000 in size"),
    ({"maps": {1: 5, 2: 1, 3: -2}}, "expected a map for each of 1, 2, 3, 4"),
    ({"maps": 5}, "task maps are 5"),
    ({"unseen": ((4, 7),)}, "held-out pair (4, 7) is not one of the task's pairs"),
    ({"unseen": ((4, 3, 1),)}, "expected 2 of the anchors 1, 2, 3, 4"),
    ({"unseen": (4, 3)}, "held-out pair 4 is not one"),
    ({"unseen": "4,3"}, "expected a list of pairs"),
    ({"unseen": ("4;3",)}, "held-out pair '4;3'"),
    ({"unseen": ((4, True),)}, "held-out pair (4, True)"),
    ({"unseen": ((4, 3), (4, 3))}, "held-out pair 4,3 stands twice"),
    ({"probe": ((4, 3),)}, "pair 4,3 is unseen and in the probe"),
    ({"unseen": ((3, 4),)}, "pair 3,4 is unseen and overridden"),
    ({"overrides": [((3, 4), -6), ("3,4", -5)]}, "pair 3,4 is overridden twice"),
    ({"overrides": {"3,9": -6}}, "overridden pair '3,9'"),
    ({"overrides": {"3,4": "six"}}, "map of pair 3,4 is 'six'"),
    ({"overrides": 3}, "the overrides are 3"),
    ({"overrides": {"3,4": -30}}, "key 29 with anchors 3,4 has the answer -1, "),
    ({"random_groups": 6, "overrides": ()}, "pair 4,3 is unseen and in a random group"),
    ({"random_groups": 7, "unseen": ()}, "random_groups is 7"),
    ({"random_groups": -1}, "random_groups is -1"),
    (
        {"random_groups": 1, "anchors": (1, 2, 5, 6), "unseen": (), "overrides": ()},
        "need n_anchors",
    ),
    ({"split_modulus": "coed"}, "did you mean 'code'"),
    ({"split_modulus": 0}, "split_modulus is 0"),
    ({"split_modulus": 1}, "leaves no training key for position 0"),
    ({"split_modulus": 1000}, "leaves no test key"),
    ({"pool": 0}, "pool is 0"),
    ({"pool": 1.5}, "pool is 1.5"),
    ({"noise": 1}, "noise is 1"),
    ({"variant": ""}, "variant is ''"),
    ({"variant": "  "}, "variant is '  ': expected a name of printable characters"),
    ({"variant": "a\nb"}, r"variant is 'a\nb': expected a name of printable characters"),
    ({"variant": "\x1b[31m"}, "expected a name of printable characters"),
    ({"variant": "a\udcff"}, "expected a name of printable characters"),
    ({"vocabulary": 10**6, "key_high": 10**5}, "expected at most"),
    ({"n_anchors": 16, "length": 20, "unseen": (), "overrides": ()}, "expected at most 4096"),
    ({"length": 4000, "n_anchors": 3, "unseen": (), "overrides": ()}, "expected at most 5000000"),
    (
        {"anchors": (1,), "maps": (5,), "unseen": ((1, 1),), "overrides": ()},
        "all 1 pairs are held out",
    ),
    ({"lenght": 9}, "did you mean 'length'"),
]


@pytest.mark.parametrize(("changes", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        AnchorTask.from_dict(changes)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_answer_is_asked_of_known_pairs_and_keys() -> None:
    with pytest.raises(InputError, match="key 100"):
        AnchorTask().answer(100, (1, 2))
    with pytest.raises(InputError, match="expected 2 of the anchors"):
        AnchorTask().answer(50, (1,))


@pytest.mark.parametrize("key", ["x", None, 2.5, True, [50], np.ones(2)])
def test_a_key_that_is_no_whole_number(key: Any) -> None:
    with pytest.raises(InputError, match="expected a whole number from 20 to 99"):
        AnchorTask().answer(key, (1, 2))
    assert AnchorTask().answer(cast("Any", np.int64(50)), (1, 2)) == 56


@pytest.mark.parametrize("found", [None, "34-wrong", {"variant": "own"}, [1], np.eye(9)])
@pytest.mark.parametrize("ask", [unseen_rows, lookup_note, loss_floors, baselines, tables])
def test_what_is_no_task_is_one_line(ask: Callable[[Any], object], found: Any) -> None:
    with pytest.raises(InputError, match="expected an AnchorTask") as caught:
        ask(found)
    assert "\n" not in str(caught.value)


def test_tables_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        tables(AnchorTask()).targets[:] = 0

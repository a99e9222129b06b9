"""The built-in variants say of themselves what they are."""

from __future__ import annotations

from typing import Any

import pytest

from initrate.errors import InputError
from initrate.tasks import (
    TASKS,
    VARIANTS,
    AnchorTask,
    lookup_note,
    task_from_dict,
    unseen_rows,
    unseen_table,
    variant,
)
from initrate.tasks._maps import tables


def test_names() -> None:
    assert TASKS == tuple(VARIANTS)
    for name in TASKS:
        assert variant(name).variant == name
        assert "\n" not in VARIANTS[name]


def test_the_table_of_the_unseen_parts() -> None:
    found = {(row["variant"], row["pair"]): row for row in unseen_table()}
    expected = {
        ("34-wrong", "4,3"): ("primary", "x-10", "seen, x-6", "x-6"),
        ("without-34", "4,3"): ("primary", "x-10", "unseen", None),
        ("without-34", "3,4"): ("unseen", "x-10", "unseen", None),
        ("34-wrong+probe", "4,3"): ("primary", "x-10", "seen, x-6", "x-6"),
        ("34-wrong+probe", "1,2"): ("probe", "x+6", "unseen", None),
        ("34-wrong+probe", "2,1"): ("probe", "x+6", "unseen", None),
        ("nine-anchors", "4,3"): ("primary", "x-3", "unseen", None),
        ("nine-anchors", "3,4"): ("unseen", "x-3", "unseen", None),
        ("random-groups", None): (None, None, None, None),
        ("non-commuting", "4,3"): ("primary", "127-x", "seen, 111-x", "111-x"),
    }
    assert {
        key: (row["role"], row["composed"], row["reverse"], row["mirrored"])
        for key, row in found.items()
    } == expected


def test_the_descriptions_name_the_answers_of_the_table() -> None:
    for row in unseen_table():
        if row["role"] == "primary" and row["variant"] != "34-wrong+probe":
            assert f"composed {row['composed']}" in VARIANTS[row["variant"]]
            if row["mirrored"]:
                assert f"mirrored {row['mirrored']}" in VARIANTS[row["variant"]]


def test_numbers_of_pairs() -> None:
    sizes = {
        name: (len(tables(variant(name)).pairs), len(tables(variant(name)).seen)) for name in TASKS
    }
    assert sizes == {
        "34-wrong": (16, 15),
        "without-34": (16, 14),
        "34-wrong+probe": (16, 13),
        "nine-anchors": (81, 79),
        "random-groups": (16, 16),
        "non-commuting": (16, 15),
    }


@pytest.mark.parametrize("n", [0, 1, 5])
def test_random_groups_are_symmetric_and_not_composed(n: int) -> None:
    known = tables(variant("random-groups", random_groups=n))
    changed = [
        pair
        for pair, target, composed in zip(known.pairs, known.targets, known.composed, strict=True)
        if (target != composed).any()
    ]
    assert len(changed) == 2 * n
    for first, second in changed:
        assert (
            known.targets[known.row((first, second))] == known.targets[known.row((second, first))]
        ).all()


def test_anchors_that_do_not_commute() -> None:
    task = variant("non-commuting")
    assert task.answer(50, (3, 4)) == 119 - 50 - 8
    assert task.answer(50, (3, 1)) != task.answer(50, (1, 3))
    (row,) = unseen_rows(task)
    assert row["composed"] == "127-x"


def test_a_reverse_that_is_the_pair_itself() -> None:
    (row,) = unseen_rows(AnchorTask(unseen=((2, 2),), overrides=()))
    assert (row["reverse"], row["mirrored"]) == ("the same pair", None)


def test_any_field_can_be_changed() -> None:
    task = variant("without-34", vocabulary=201, pool=708_750, split_modulus="paper")
    assert (task.vocabulary, task.pool, task.modulus) == (201, 708_750, 7)
    assert task_from_dict({"variant": "without-34", "vocabulary": 201}).vocabulary == 201


def test_a_task_of_ones_own_may_have_any_name() -> None:
    own = AnchorTask(variant="mine", maps=(1, 2, 3, 4), overrides=(), pool=100)
    assert task_from_dict(own.to_dict()) == own


OWN = {"variant": "own", "anchors": [1, 2, 3], "maps": [7, -3, 2], "unseen": ["3,1", "1,3"]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"variant": "34-wrongg"}, "did you mean '34-wrong'"),
        ({"variant": ["34-wrong"]}, "unknown task"),
        ({}, "the task has no variant"),
        ({"variant": "34-wrong", "vocab": 201}, "did you mean 'vocabulary'"),
        ({"variant": "34-wrong", "name": "x"}, "unknown task field 'name'"),
        ({**OWN, "name": "x"}, "unknown task field 'name'"),
        ({"variant": "34-wrong", 5: 1}, "unknown task field '5'"),
    ],
)
def test_bad_names(given: dict[Any, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        task_from_dict(given)
    assert message in str(caught.value)


def test_own_maps_have_no_exception_unless_one_is_given() -> None:
    assert task_from_dict(OWN).overridden == {}
    four = {"variant": "own", "anchors": [1, 2, 3, 4], "maps": [7, -3, 2, 4]}
    assert task_from_dict(four).overridden == {}
    assert task_from_dict({**four, "overrides": {"3,4": -6}}).overridden == {(3, 4): -6}
    assert AnchorTask(maps=(1, 2, 3, 4)).overridden == {}
    assert AnchorTask(maps={1: 5, 2: 1, 3: -2, 4: -8}).overridden == {(3, 4): -6}
    # A built-in variant keeps its own.
    assert variant("34-wrong", maps=[1, 2, 3, 4]).overridden == {(3, 4): -6}
    assert variant("34-wrong") == AnchorTask()


@pytest.mark.parametrize("name", ["own", "own-maps"])
def test_names_of_own_tasks(name: str) -> None:
    task = task_from_dict({**OWN, "variant": name})
    assert task.variant == name and task_from_dict(task.to_dict()) == task


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"variant": "34-wrng"}, "did you mean '34-wrong'"),
        ({"variant": "mine"}, "unknown task 'mine'"),
        ({"variant": "ownmaps"}, "did you mean 'own'"),
    ],
)
def test_a_slip_in_a_name_is_no_own_task(changes: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        task_from_dict({**OWN, **changes})


def test_an_own_task_needs_anchors_and_maps() -> None:
    for left_out in ("anchors", "maps"):
        given = {name: found for name, found in OWN.items() if name != left_out}
        with pytest.raises(InputError, match="lacks its anchors or its maps"):
            task_from_dict(given)


@pytest.mark.parametrize("given", [5, None, [1]])
def test_a_task_that_is_no_table(given: object) -> None:
    for read in (task_from_dict, AnchorTask.from_dict):
        with pytest.raises(InputError, match="expected a table"):
            read(given)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("names", ["34-wrong", None, 5])
def test_tables_are_of_lists_of_names(names: Any) -> None:
    with pytest.raises(InputError, match="expected a list of names"):
        unseen_table(names)


def test_a_look_up_that_reaches_the_composed_answer_is_told() -> None:
    """Maps that commute, with the reversed pair seen: a look-up cannot be told from composing."""
    one_order = task_from_dict({**OWN, "unseen": ["3,1"]})
    assert [row["lookup_composes"] for row in unseen_rows(one_order)] == [True]
    note = lookup_note(one_order)
    assert note is not None and "(3,1)" in note and "\n" not in note
    assert lookup_note(task_from_dict(OWN)) is None
    for name in TASKS:
        assert lookup_note(variant(name)) is None
        assert not any(row["lookup_composes"] for row in unseen_rows(variant(name)))

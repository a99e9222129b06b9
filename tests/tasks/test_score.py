"""Scores of solvers whose answers are known, and of random ones recounted in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from initrate.errors import InputError
from initrate.tasks import AnchorTask, Integers, Score, Split, variant

Solver = Callable[[Split], Integers]

SCALARS = {
    "training_accuracy",
    "seen_accuracy",
    "seen_training_key_accuracy",
    "inferential_accuracy",
    "inferential_accuracy_last_position",
    "inferential_accuracy_test_keys",
    "symmetric_accuracy",
    "probe_accuracy",
    "commutes",
    "n_unseen",
    "unseen_composed",
    "unseen_mirrored",
    "unseen_top_shift",
    "unseen_top_shift_n",
    "probe_n",
    "probe_composed",
}


def scored(task: AnchorTask, solver: Solver, *, exhaustive: bool = True) -> Score:
    splits = task.evaluation(seed=0, pool_seed=0, exhaustive=exhaustive)
    return task.score(splits, [solver(split) for split in splits])


def compose(split: Split) -> Integers:
    return split.targets


def mirror(split: Split) -> Integers:
    mirrored = split.candidates["mirrored"]
    return np.where(mirrored >= 0, mirrored, split.targets)


def test_names_of_the_scalars(task: AnchorTask) -> None:
    found = scored(task, compose, exhaustive=False)
    assert set(found.scalars) == SCALARS
    assert all(type(number) in (int, float, type(None)) for number in found.scalars.values())


def test_a_model_that_composes() -> None:
    found = scored(variant("34-wrong+probe"), compose).scalars
    assert found["inferential_accuracy"] == 1.0
    assert found["symmetric_accuracy"] == 0.0
    assert found["probe_accuracy"] == 1.0
    assert found["commutes"] == 0.0, "(3,4) is answered by x-6, (4,3) by x-10"
    assert found["n_unseen"] == found["unseen_composed"] == 8 * 498
    assert found["probe_n"] == found["probe_composed"] == 2 * 8 * 498
    assert found["unseen_top_shift"] is None


def test_a_model_that_mirrors() -> None:
    found = scored(variant("34-wrong+probe"), mirror).scalars
    assert found["inferential_accuracy"] == 0.0
    assert found["symmetric_accuracy"] == found["commutes"] == 1.0
    assert found["unseen_mirrored"] == 8 * 498
    assert found["seen_accuracy"] == 1.0


def test_a_third_answer_is_named_by_its_shift() -> None:
    task = variant("34-wrong")

    def third(split: Split) -> Integers:
        answers = split.targets.copy()
        unseen = np.flatnonzero(split.columns["pair"] == 14)
        key = split.columns["key"]
        answers[unseen] = key[unseen] - 3
        # Other shifts below and above, and mirrored and composed answers, which are no third one
        # however many they are.
        for shift, some in [(-4, unseen[:5]), (-1, unseen[5:11]), (-6, unseen[11:2500])]:
            answers[some] = key[some] + shift
        answers[unseen[2500:2600]] = key[unseen[2500:2600]] - 10
        return answers

    found = scored(task, third)
    n_third = 8 * 498 - 2600
    assert found.scalars["unseen_mirrored"] == 2489 > n_third
    assert found.scalars["unseen_composed"] == 100
    assert found.scalars["unseen_top_shift"] == -3
    assert found.scalars["unseen_top_shift_n"] == n_third
    shifts = {row["shift"]: row["n"] for row in found.shifts if row["split"] == "unseen"}
    assert shifts == {-3: n_third, -4: 5, -1: 6, -6: 2489, -10: 100}


def test_answers_that_a_task_does_not_have_are_none() -> None:
    without = scored(variant("without-34"), compose).scalars
    assert without["symmetric_accuracy"] is without["unseen_mirrored"] is None
    assert without["probe_accuracy"] is without["probe_composed"] is None
    assert without["commutes"] == 1.0
    groups = scored(variant("random-groups"), compose).scalars
    assert groups["inferential_accuracy"] is groups["commutes"] is None
    assert groups["n_unseen"] == 0
    assert groups["seen_accuracy"] == 1.0
    one = AnchorTask(variant="one", n_anchors=1, unseen=((2,),), overrides=())
    assert scored(one, compose).scalars["commutes"] is None


def test_accuracy_by_position() -> None:
    def last_only(split: Split) -> Integers:
        right = split.columns["position"] == 6
        return np.where(right, split.targets, mirror(split))

    found = scored(variant("34-wrong"), last_only)
    assert found.scalars["inferential_accuracy_last_position"] == 1.0
    by_position = {
        row["index"]: row["composed"]
        for row in found.counts
        if row["split"] == "unseen" and row["by"] == "position" and row["pair"] == "4,3"
    }
    assert by_position == {**dict.fromkeys(range(6), 0), 6: 8 * 71}
    (last,) = [
        row
        for row in found.counts
        if (row["split"], row["pair"], row["by"]) == ("unseen", "4,3", "last_position")
    ]
    assert last["n"] == last["composed"] == by_position[6]
    share = found.scalars["inferential_accuracy"]
    assert share == 8 * 71 / (8 * 498)


@settings(deadline=None, max_examples=6)
@given(
    seed=st.integers(0, 2**32 - 1),
    name=st.sampled_from(["34-wrong", "34-wrong+probe", "without-34", "non-commuting"]),
)
def test_random_answers_recounted(seed: int, name: str) -> None:
    task = variant(name)
    splits = task.evaluation(seed=1, pool_seed=1, exhaustive=False)
    generator = np.random.default_rng(seed)
    predictions = [
        np.where(
            generator.random(split.targets.shape) < 0.3,
            split.targets,
            np.where(
                generator.random(split.targets.shape) < 0.5,
                split.candidates["mirrored"],
                generator.integers(0, task.vocabulary, split.targets.shape),
            ),
        )
        for split in splits
    ]
    found = task.score(splits, predictions)
    assert task.scalars(splits, predictions) == found.scalars
    assert_recounted(task, splits, predictions, found)


def assert_recounted(
    task: AnchorTask, splits: tuple[Split, ...], predictions: list[Integers], found: Score
) -> None:
    def pair_name(row: int) -> str:
        first, second = divmod(row, len(task.anchors))
        return f"{task.anchors[first]},{task.anchors[second]}"

    expected: dict[tuple[Any, ...], Counter[str]] = {}
    histogram: Counter[tuple[Any, ...]] = Counter()
    for split, answers in zip(splits, predictions, strict=True):
        unseen = split.name in ("unseen", "unseen_test_keys", "mirror")
        for row in range(len(answers)):
            answer = int(answers[row])
            key, position = int(split.columns["key"][row]), int(split.columns["position"][row])
            name = pair_name(int(split.columns["pair"][row]))
            groups: list[tuple[Any, ...]] = [
                (pair, *by)
                for pair in ("all", name)
                for by in [("all", None), ("position", position), ("key", key)]
                if pair == "all" or unseen or by[0] != "key"
            ]
            if position == task.n_positions - 1:
                groups += [(pair, "last_position", position) for pair in ("all", name)]
            flags = {
                "n": True,
                "correct": answer == split.targets[row],
                "composed": answer == split.candidates["composed"][row],
                "mirrored": answer == split.candidates["mirrored"][row],
            }
            for group in groups:
                counter = expected.setdefault((split.name, *group), Counter())
                counter.update({flag: int(on) for flag, on in flags.items()})
            if unseen:
                histogram[split.name, name, answer - key] += 1
    rows = {(row["split"], row["pair"], row["by"], row["index"]): row for row in found.counts}
    assert len(rows) == len(found.counts)
    assert set(rows) == set(expected)
    for group, row in rows.items():
        for flag in ("n", "correct", "composed", "mirrored"):
            if row[flag] is not None:
                assert row[flag] == expected[group][flag], (group, flag)
    assert {
        (row["split"], row["pair"], row["shift"]): row["n"] for row in found.shifts
    } == histogram
    primary = expected["unseen", "4,3", "all", None]
    assert found.scalars["n_unseen"] == primary["n"]
    assert found.scalars["unseen_composed"] == primary["composed"]
    if found.scalars["unseen_mirrored"] is not None:
        assert found.scalars["unseen_mirrored"] == primary["mirrored"]
    for split, scalar in [("training", "training_accuracy"), ("seen", "seen_accuracy")]:
        counter = expected[split, "all", "all", None]
        assert found.scalars[scalar] == pytest.approx(counter["correct"] / counter["n"])
    test_keys = expected["unseen_test_keys", "4,3", "all", None]
    assert found.scalars["inferential_accuracy_test_keys"] == pytest.approx(
        test_keys["composed"] / test_keys["n"]
    )


def test_mirrored_counts_exist_where_there_is_such_an_answer() -> None:
    found = scored(variant("34-wrong+probe"), compose)
    with_mirrored = {row["pair"] for row in found.counts if row["mirrored"] is not None}
    assert with_mirrored == {"4,3"}


@pytest.mark.parametrize("method", ["score", "scalars"])
def test_predictions_of_another_shape(method: str) -> None:
    task = variant("34-wrong")
    splits = task.evaluation(seed=0, pool_seed=0, exhaustive=False)
    answers = [split.targets for split in splits]
    with pytest.raises(InputError, match="found 5 arrays of predictions for 6 splits"):
        getattr(task, method)(splits, answers[1:])
    answers[2] = answers[2][:-1]
    with pytest.raises(InputError, match="split seen_training_keys have shape"):
        getattr(task, method)(splits, answers)

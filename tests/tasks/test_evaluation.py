"""Evaluation splits: exhaustive, apart from training, comparable pair by pair."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from initrate.tasks import SPLITS, AnchorTask, Split, variant
from tests.tasks.checker import Checker


def splits_of(task: AnchorTask, *, exhaustive: bool, seed: int = 0) -> dict[str, Split]:
    found = task.evaluation(seed=seed, pool_seed=0, exhaustive=exhaustive)
    return {split.name: split for split in found}


def cells(split: Split) -> Counter[tuple[int, int, int]]:
    columns = split.columns
    return Counter(
        zip(
            columns["pair"].tolist(),
            columns["key"].tolist(),
            columns["position"].tolist(),
            strict=True,
        )
    )


def test_splits_have_their_names_in_order(task: AnchorTask) -> None:
    for exhaustive in (False, True):
        names = [
            split.name for split in task.evaluation(seed=0, pool_seed=0, exhaustive=exhaustive)
        ]
        assert names == [name for name in SPLITS if name in names]
        assert {"training", "seen", "seen_training_keys"} <= set(names)
        assert ("unseen" in names) == bool(task.unseen or task.probe)
        assert ("unseen_test_keys" in names) == ("unseen" in names)


@pytest.mark.parametrize(
    ("name", "draws"),
    [("seen", 8), ("seen_training_keys", 1), ("unseen", 8), ("unseen_test_keys", 8), ("mirror", 8)],
)
def test_exhaustive_means_every_cell(name: str, draws: int) -> None:
    task = variant("34-wrong+probe")
    checker = Checker(task.to_dict())
    held_out = set(checker.held_out)
    pairs = {
        "mirror": {(3, 4)},
        "unseen": held_out,
        "unseen_test_keys": held_out,
    }.get(name, set(checker.pairs) - held_out)
    test_keys = name in ("seen", "unseen_test_keys")
    expected = {
        (checker.pairs.index(pair), key, position): draws
        for pair in pairs
        for position in range(7)
        for key in range(20, 100)
        if (key % 9 == position) == test_keys
    }
    assert cells(splits_of(task, exhaustive=True)[name]) == expected


def test_without_noise_every_case_comes_once() -> None:
    found = splits_of(variant("34-wrong", noise=False), exhaustive=True)
    for name, split in found.items():
        if name != "training":
            assert max(cells(split).values()) == 1


def test_sizes_of_the_sample() -> None:
    found = splits_of(variant("34-wrong+probe"), exhaustive=False)
    assert {name: len(split.targets) for name, split in found.items()} == {
        "training": 512,
        "seen": 512,
        "seen_training_keys": 512,
        "unseen": 3 * 512,
        "unseen_test_keys": 512,
        "mirror": 512,
    }


def test_the_sample_of_the_unseen_part_takes_positions_in_turn() -> None:
    split = splits_of(variant("without-34"), exhaustive=False)["unseen"]
    for pair in np.unique(split.columns["pair"]):
        positions = split.columns["position"][split.columns["pair"] == pair]
        assert np.ptp(np.bincount(positions, minlength=7)) <= 1


@pytest.mark.parametrize("exhaustive", [False, True])
def test_pairs_stand_in_the_same_surroundings(exhaustive: bool) -> None:
    found = splits_of(variant("34-wrong+probe"), exhaustive=exhaustive)
    blocks = [found["mirror"].tokens]
    unseen = found["unseen"]
    blocks += [
        unseen.tokens[unseen.columns["pair"] == pair] for pair in np.unique(unseen.columns["pair"])
    ]
    assert len(blocks) == 4
    hidden = [np.where(block < 20, 0, block) for block in blocks]
    for other in hidden[1:]:
        np.testing.assert_array_equal(other, hidden[0])
    assert not np.array_equal(blocks[0], blocks[1])


def test_noise_draws_of_a_cell_differ() -> None:
    split = splits_of(variant("34-wrong"), exhaustive=True)["unseen"]
    assert len(np.unique(split.tokens, axis=0)) == len(split.tokens)


def test_no_evaluation_key_cell_of_test_type_is_trained() -> None:
    task = variant("34-wrong")
    tokens, _ = task.training_batches(
        pool_seed=0, order_seed=0, first_step=0, n_steps=20, batch=1000
    )
    checker = Checker(task.to_dict())
    trained = {checker.read(row)[:2] for row in tokens.reshape(-1, 9).tolist()}
    seen = splits_of(task, exhaustive=True)["seen"]
    asked = set(zip(seen.columns["key"].tolist(), seen.columns["position"].tolist(), strict=True))
    assert not trained & asked


@pytest.mark.parametrize("exhaustive", [False, True])
def test_a_pure_function_of_the_seed(exhaustive: bool) -> None:
    task = variant("without-34")
    first, again = (splits_of(task, exhaustive=exhaustive, seed=5) for _ in range(2))
    other = splits_of(task, exhaustive=exhaustive, seed=6)
    for name, split in first.items():
        np.testing.assert_array_equal(split.tokens, again[name].tokens)
        assert not np.array_equal(split.tokens, other[name].tokens)


def test_training_data_of_a_pool_is_part_of_it() -> None:
    task = variant("34-wrong", pool=3000)
    tokens, _ = task.training_batches(
        pool_seed=4, order_seed=0, first_step=0, n_steps=1, batch=3000
    )
    pool = {tuple(row) for row in tokens[0].tolist()}
    for seed, exhaustive, n in [(0, True, 2048), (1, True, 2048), (0, False, 512)]:
        split = task.evaluation(seed=seed, pool_seed=4, exhaustive=exhaustive)[0]
        assert len(split.targets) == n
        assert {tuple(row) for row in split.tokens.tolist()} <= pool


def test_training_data_of_a_small_pool_is_all_of_it() -> None:
    split = variant("34-wrong", pool=300).evaluation(seed=0, pool_seed=4, exhaustive=True)[0]
    assert len(split.targets) == 300

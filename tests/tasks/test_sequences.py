"""Training data: pure functions of seeds and step, uniform, one pool or a stream."""

from __future__ import annotations

import numpy as np
import pytest

from initrate.errors import InputError
from initrate.tasks import AnchorTask, Integers, variant
from initrate.tasks._sequences import below, pool, words
from tests.tasks.checker import Checker

WORDS = [549725986, 2699487070, 3342233323, 3096723724, 3534193591]
TOKENS = [77, 85, 65, 47, 82, 1, 2, 43, 81]
TARGET = 88


def batches(
    task: AnchorTask, *, first_step: int = 0, n_steps: int = 1, batch: int = 64, **seeds: int
) -> tuple[Integers, Integers]:
    return task.training_batches(
        **({"pool_seed": 1, "order_seed": 2} | seeds),
        first_step=first_step,
        n_steps=n_steps,
        batch=batch,
    )


@pytest.mark.parametrize("size", [None, 1000])
def test_a_step_depends_on_seeds_and_step_alone(size: int | None) -> None:
    task = variant("34-wrong", pool=size)
    tokens, targets = batches(task, n_steps=40)
    for step in (0, 1, 17, 39):
        one, answer = batches(task, first_step=step)
        np.testing.assert_array_equal(one[0], tokens[step])
        np.testing.assert_array_equal(answer[0], targets[step])
    again, _ = batches(task, first_step=13, n_steps=20)
    np.testing.assert_array_equal(again, tokens[13:33])


def test_a_larger_batch_begins_with_the_smaller_one() -> None:
    task = variant("34-wrong")
    small, _ = batches(task, n_steps=3, batch=50)
    large, _ = batches(task, n_steps=3, batch=300)
    np.testing.assert_array_equal(large[:, :50], small)


@pytest.mark.parametrize("size", [None, 1000])
@pytest.mark.parametrize("seed", ["pool_seed", "order_seed"])
def test_every_seed_has_an_effect(size: int | None, seed: str) -> None:
    task = variant("34-wrong", pool=size)
    first, _ = batches(task)
    second, _ = batches(task, **{seed: 9})
    assert not np.array_equal(first, second)


def test_no_two_steps_of_a_stream_agree() -> None:
    tokens, _ = batches(variant("34-wrong"), n_steps=200, batch=32)
    assert len(np.unique(tokens.reshape(-1, 9), axis=0)) == 200 * 32


def test_epochs_of_a_pool_are_permutations_without_the_partial_batch() -> None:
    task = variant("34-wrong", pool=1000)
    whole, _ = pool(task, 1)
    rows = {tuple(row): index for index, row in enumerate(whole.tokens.tolist())}
    assert len(rows) == 1000
    tokens, _ = batches(task, n_steps=30, batch=64)
    epochs = tokens.reshape(2, 15 * 64, 9)
    order = [[rows[tuple(row)] for row in epoch] for epoch in epochs.tolist()]
    assert all(len(set(epoch)) == 15 * 64 for epoch in order)
    assert order[0] != order[1]


def test_the_order_seed_changes_the_order_and_not_the_pool() -> None:
    task = variant("34-wrong", pool=640)
    first, _ = batches(task, n_steps=10, order_seed=1)
    second, _ = batches(task, n_steps=10, order_seed=2)

    def rows(tokens: Integers) -> list[list[int]]:
        return tokens.reshape(-1, 9).tolist()

    assert rows(first) != rows(second)
    assert sorted(rows(first)) == sorted(rows(second))


def test_a_pool_has_the_same_number_of_every_pair() -> None:
    # 15 x 50,625, the training set of arXiv 2405.05409.
    task = variant("34-wrong", pool=759_375, vocabulary=201)
    whole, targets = pool(task, 0)
    assert whole.tokens.shape == (759_375, 9)
    assert set(np.bincount(whole.pair)[np.unique(whole.pair)].tolist()) == {50_625}
    some = slice(123_456, 124_000)
    Checker(task.to_dict()).training(whole.tokens[some], targets[some])


def test_the_distribution_is_uniform() -> None:
    task = variant("without-34")
    checker = Checker(task.to_dict())
    n = 20_000
    tokens, _ = batches(task, batch=n)
    read = [checker.read(row) for row in tokens[0].tolist()]

    def chi_square_is_small(counts: np.ndarray, expected: np.ndarray | float) -> None:
        statistic = float(((counts - expected) ** 2 / expected).sum())
        degrees = len(counts) - 1
        assert abs(statistic - degrees) < 5 * np.sqrt(2 * degrees)

    _, pairs = np.unique([pair for _, _, pair in read], axis=0, return_counts=True)
    assert len(pairs) == 14
    chi_square_is_small(pairs, n / 14)
    positions = np.bincount([position for _, position, _ in read])
    chi_square_is_small(positions, n / 7)
    keys = np.bincount([key for key, position, _ in read if position == 2])[20:]
    allowed = np.arange(20, 100) % 9 != 2
    assert not keys[~allowed].any()
    chi_square_is_small(keys[allowed], keys.sum() / allowed.sum())
    # The last place is noise unless the key is at position 6.
    last = np.bincount([row[8] for row in tokens[0].tolist() if row[8] >= 20], minlength=100)[20:]
    chi_square_is_small(last, last.sum() / 80)


def test_words_are_what_they_were() -> None:
    # Written down once: the data of stored studies must come again in every release.
    assert words("stream", seeds=(1, 2), block=3, n=5).tolist() == WORDS
    tokens, targets = batches(variant("34-wrong"), first_step=3, batch=1)
    assert tokens[0, 0].tolist() == TOKENS
    assert targets[0, 0] == TARGET


def test_streams_of_blocks_and_purposes_are_apart() -> None:
    found = [
        words(purpose, seeds=seeds, block=block, n=64)
        for purpose in ("stream", "pool")
        for seeds in ((1, 2), (2, 1), (12,))
        for block in (0, 1)
    ]
    assert len(np.unique(np.concatenate(found))) == 64 * len(found)


def test_below_reaches_every_number_evenly() -> None:
    random = words("test", seeds=(0,), block=0, n=100_000)
    counts = np.bincount(below(10, random), minlength=10)
    assert len(counts) == 10
    assert abs(counts - 10_000).max() < 5 * np.sqrt(100_000 * 0.1 * 0.9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"batch": 0}, "batch 0"), ({"n_steps": 0}, "0 of them"), ({"first_step": -1}, "from -1")],
)
def test_bad_steps(changes: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        batches(variant("34-wrong"), **changes)


def test_a_pool_smaller_than_the_batch() -> None:
    with pytest.raises(InputError, match="a pool of 10 sequences holds no batch of 64"):
        batches(variant("34-wrong", pool=10))

"""Every example, of every variant and option, against an independent derivation."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from initrate.errors import InputError
from initrate.tasks import AnchorTask, variant
from tests.tasks.checker import GROUPS, PAPER, Checker


def test_training_examples(task: AnchorTask) -> None:
    checker = Checker(task.to_dict())
    tokens, targets = task.training_batches(
        pool_seed=3, order_seed=4, first_step=5, n_steps=6, batch=200
    )
    assert tokens.shape == (6, 200, task.length)
    assert targets.shape == (6, 200)
    for step in range(6):
        checker.training(tokens[step], targets[step])


def test_all_seen_pairs_and_training_cells_come(task: AnchorTask) -> None:
    checker = Checker(task.to_dict())
    pool = task.pool or 0
    batch = min(pool, 1000) or 8_000
    tokens, _ = task.training_batches(
        pool_seed=0, order_seed=0, first_step=0, n_steps=1, batch=batch
    )
    found = [checker.read(row) for row in tokens[0].tolist()]
    assert {pair for _, _, pair in found} == set(checker.pairs) - set(checker.held_out)
    if not pool:
        assert {(key, position) for key, position, _ in found} == {
            (key, position)
            for key in range(task.key_low, task.key_high + 1)
            for position in range(task.n_positions)
            if not checker.is_test(key, position)
        }


def test_evaluation_examples(task: AnchorTask) -> None:
    checker = Checker(task.to_dict())
    for exhaustive in (False, True):
        for split in task.evaluation(seed=1, pool_seed=3, exhaustive=exhaustive):
            checker.split(split)


def test_the_checker_itself_knows_the_paper() -> None:
    checker = Checker(variant("34-wrong").to_dict())
    assert checker.maps == PAPER
    assert checker.target(23, (1, 2)) == 29
    assert (checker.target(50, (3, 4)), checker.composed(50, (3, 4))) == (44, 40)
    assert checker.mirrored(50, (4, 3)) == 44
    groups = Checker(variant("random-groups", random_groups=6).to_dict())
    assert groups.target(50, (4, 3)) == 50 + dict(GROUPS)["34"]


@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_any_valid_task(data: st.DataObject) -> None:
    n_anchors = data.draw(st.integers(1, 3))
    anchors = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True))
    shifts = data.draw(st.lists(st.integers(-3, 3), min_size=len(anchors), max_size=len(anchors)))
    pair = st.tuples(*[st.sampled_from(anchors)] * n_anchors)
    held_out = data.draw(st.lists(pair, max_size=3, unique=True))
    split = data.draw(st.integers(0, len(held_out)))
    exceptions = data.draw(st.dictionaries(pair, st.integers(-9, 9), max_size=2))
    try:
        task = AnchorTask(
            variant="any",
            length=data.draw(st.integers(1 + n_anchors, 8)),
            key_low=data.draw(st.integers(15, 25)),
            key_high=data.draw(st.integers(24, 40)),
            vocabulary=60,
            noise_high=50,
            anchors=tuple(anchors),
            maps=tuple(shifts),
            n_anchors=n_anchors,
            noise=data.draw(st.booleans()),
            unseen=tuple(held_out[:split]),
            probe=tuple(held_out[split:]),
            overrides=exceptions,
            split_modulus=data.draw(st.sampled_from(["code", "paper", 3, 8])),
            pool=data.draw(st.sampled_from([None, 300])),
        )
    except InputError as error:
        assert "\n" not in str(error)
        return
    checker = Checker(task.to_dict())
    tokens, targets = task.training_batches(
        pool_seed=1, order_seed=2, first_step=0, n_steps=1, batch=100
    )
    checker.training(tokens[0], targets[0])
    splits = task.evaluation(seed=1, pool_seed=1, exhaustive=True)
    for found in splits:
        checker.split(found)
    task.score(splits, [found.targets for found in splits])
    assert AnchorTask.from_dict(task.to_dict()) == task

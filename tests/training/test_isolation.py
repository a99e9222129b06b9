"""What the neighbours in a bucket may change: nothing by diverging, a digit by their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from initrate.model import ModelConfig
from initrate.rule import Rule
from initrate.training import Bucket, BucketResult, Execution, Lane, Seeds, Training, train
from tests.training.random_task import RandomTask

CONFIG = ModelConfig(d_model=12, n_heads=2, d_k=4, d_v=4, d_ff=16, max_positions=8)


def lane(index: int, **changes: object) -> Lane:
    recipe = {"steps": 20, "batch": 6, "log_every": 1, "warmup_steps": 4, "weight_decay": 0.1}
    training = Training(**{**recipe, **changes})  # pyright: ignore[reportArgumentType]
    return Lane(f"{index:012x}", Rule(gamma=0.4 + 0.1 * index), training, Seeds.all(index))


def run(*lanes: Lane, config: ModelConfig = CONFIG, threads: int = 1) -> BucketResult:
    return train(Bucket(RandomTask(), config, lanes), Execution(threads=threads))


def assert_same_lane(a: BucketResult, b: BucketResult, index: int) -> None:
    """Every number of the lane is equal, bit for bit."""
    for name, array in a.weights.items():
        np.testing.assert_array_equal(array[index], b.weights[name][index], err_msg=name)
    first, second = a.lanes[index], b.lanes[index]
    assert first == second


WILD: tuple[Mapping[str, object], ...] = (
    {"lr": 1e6},
    {"lr": 1e29, "clip_norm": None},
    {"lr": 1e6, "weight_decay": 1e6, "clip_norm": None},
)


@pytest.mark.parametrize(
    ("optimizer", "norm_position", "threads"),
    [("adamw", "pre", 1), ("sgd", "pre", 2), ("adamw", "post", 2), ("sgd", "post", 1)],
)
def test_wild_lanes_change_no_bit_of_their_neighbours(
    optimizer: str, norm_position: str, threads: int
) -> None:
    config = replace(CONFIG, norm_position=norm_position)  # pyright: ignore[reportArgumentType]
    lanes = [lane(index, optimizer=optimizer) for index in range(6)]
    tame = run(*lanes, config=config, threads=threads)
    for index, wild in zip((1, 3, 5), WILD, strict=True):
        lanes[index] = lane(index, **{"optimizer": optimizer, **wild})
    result = run(*lanes, config=config, threads=threads)
    for index in (0, 2, 4):
        assert not result.lanes[index].diverged
        assert_same_lane(tame, result, index)
    for index in (1, 3, 5):
        assert losses(tame, index) != losses(result, index)


@pytest.mark.parametrize(
    "wild",
    [
        {"lr": 1e20},
        {"lr": 9e29},
        # The decay alone lets the weights overflow, four steps into the run.
        {"lr": 1e6, "weight_decay": 1e6},
    ],
    ids=["lr", "overflow", "decay"],
)
def test_divergence_is_recorded_and_the_lane_frozen(wild: Mapping[str, object]) -> None:
    both = {"optimizer": "sgd", "clip_norm": None}
    result = run(lane(0, **both), lane(1, **{**both, **wild}))
    diverged = result.lanes[1]
    assert diverged.diverged
    assert diverged.diverged_step is not None
    assert 0 <= diverged.diverged_step < 20
    assert not result.lanes[0].diverged
    assert result.lanes[0].diverged_step is None
    # The weights that are kept are the last finite ones.
    assert all(np.isfinite(array).all() for array in result.weights.values())


@pytest.mark.parametrize("changed", [{"clip_norm": 1e-3}, {"lr": 1e-4}, {"warmup_steps": 0}])
def test_a_lane_has_its_own_recipe(changed: Mapping[str, object]) -> None:
    same = run(lane(0), lane(1))
    other = run(lane(0), lane(1, **changed))
    assert_same_lane(same, other, 0)
    assert losses(same, 1) != losses(other, 1)


@pytest.mark.parametrize("width", [1, 2, 7])
def test_the_width_of_a_bucket_changes_the_last_digits_alone(width: int) -> None:
    lanes = [lane(index) for index in range(4)]
    four = run(*lanes)
    others = run(*[lanes[index % 4] for index in range(width)])
    for index in range(min(width, 4)):
        assert losses(others, index) == pytest.approx(losses(four, index), rel=1e-5)


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_the_number_of_threads_changes_the_last_digits_alone(threads: int) -> None:
    lanes = [lane(index) for index in range(4)]
    one, many = run(*lanes), run(*lanes, threads=threads)
    for index in range(4):
        assert losses(many, index) == pytest.approx(losses(one, index), rel=1e-5)


def test_the_same_lane_twice_gives_the_same_numbers() -> None:
    result = run(lane(0), lane(0))
    assert losses(result, 0) == pytest.approx(losses(result, 1), rel=1e-5)


def losses(result: BucketResult, index: int) -> Sequence[float]:
    return [row["loss"] for row in result.lanes[index].curve[1:]]  # pyright: ignore[reportReturnType]

"""Execution plans: buckets, widths, cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from initrate.errors import InputError, StoreError
from initrate.model import ModelConfig
from initrate.rule import Rule
from initrate.study import (
    Cell,
    ExecutionPlan,
    PlannedBucket,
    StudyConfig,
    cells,
    cost,
    grid,
    measure_speed,
    plan_execution,
    preset,
    read_plan,
    run,
    step_operations,
)
from initrate.tasks import variant
from initrate.training import Bucket, Lane, Seeds, Training
from tests.study import standin


def _buckets(config: StudyConfig, **options: object) -> list[list[Cell]]:
    points = {point.id: point.cell for point in grid(config)}
    plan = plan_execution(config, threads=2, **options)  # pyright: ignore[reportArgumentType]
    return [[points[name] for name in bucket.cells] for bucket in plan.buckets]


def test_a_bucket_has_one_shape_and_one_seed(config: StudyConfig) -> None:
    found = [({c.model.n_layers for c in b}, {c.seeds.init for c in b}) for b in _buckets(config)]
    assert found == [({1}, {1}), ({2}, {1}), ({1}, {2}), ({2}, {2})]


def test_every_bucket_is_one_for_the_engine() -> None:
    """Whatever the axes are, cells of one bucket differ only in what lanes may differ in."""
    config = StudyConfig(
        name="many",
        task=variant("34-wrong"),
        axes={
            "gamma": (0.5, 0.8),
            "batch": (8, 16),
            "lr": (1e-3, 2e-3),
            "optimizer": ("adamw", "sgd"),
            "pool": (100, 200),
            "gamma_qk": (0.4, 0.6),
        },
    )
    buckets = _buckets(config)
    assert sum(len(bucket) for bucket in buckets) == 64
    for bucket in buckets:
        lanes = tuple(Lane(c.id, c.rule, c.training, c.seeds) for c in bucket)
        Bucket(bucket[0].task, bucket[0].model, lanes)
        assert {cell.task for cell in bucket} == {bucket[0].task}
        assert {cell.model for cell in bucket} == {bucket[0].model}


def test_few_cells_of_a_seed_wait_for_further_seeds(config: StudyConfig) -> None:
    narrow = replace(config, axes={"depth": (1, 2)}, seeds=(1, 2, 3, 4, 5, 6))
    widths = [len(bucket) for bucket in _buckets(narrow)]
    assert widths == [4, 4, 2, 2]


def test_wide_groups_are_shared_out_evenly(config: StudyConfig) -> None:
    wide = replace(config, axes={"gamma": tuple(k / 10 for k in range(9))}, seeds=(1,))
    assert sorted(len(bucket) for bucket in _buckets(wide)) == [4, 5]


def test_memory_limits_the_width(config: StudyConfig) -> None:
    one = cost(cells(config)[1]).memory / 2**30
    assert max(map(len, _buckets(config, memory_limit=2.1 * one))) == 2
    with pytest.raises(InputError, match="raise it, or take a smaller batch"):
        plan_execution(config, memory_limit=0.5 * one)


def test_the_laptop_takes_less_than_two_gibibytes() -> None:
    for name in ("laptop", "laptop-34-wrong", "lr-wd"):
        for bucket in _buckets(preset(name)):
            assert sum(cost(cell).memory for cell in bucket) < 1.5 * 2**30


def test_the_plan_is_the_same_every_time_and_comes_back(config: StudyConfig) -> None:
    plan = plan_execution(config, threads=3)
    assert plan == plan_execution(config, threads=3)
    assert ExecutionPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert plan.execution.threads == 3
    assert len({bucket.id for bucket in plan.buckets}) == len(plan.buckets)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"threads": 0}, "threads is 0"),
        ({"threads": True}, "threads is True"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"memory_limit": 0}, "memory limit is 0"),
        ({"memory_limit": float("nan")}, "memory limit is nan"),
        ({"memory_limit": "2"}, "memory limit is '2'"),
        ({"dtype": "float16"}, "unknown dtype"),
    ],
)
def test_options(config: StudyConfig, options: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        plan_execution(config, **options)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda t: t.pop("threads"),
        lambda t: t.update(buckets=3),
        lambda t: t["buckets"].append(3),
        lambda t: t["buckets"][0].pop("id"),
        lambda t: t["buckets"][0].update(cells=[3]),
        lambda t: t["buckets"][0].update(more=3),
    ],
)
def test_plans_that_are_none(
    config: StudyConfig, spoil: Callable[[dict[str, object]], None]
) -> None:
    table = plan_execution(config, threads=2).to_dict()
    spoil(table)
    with pytest.raises(StoreError, match="execution plan"):
        ExecutionPlan.from_dict(table)


def _cell(model: ModelConfig, **changes: object) -> Cell:
    training = Training(**changes)  # pyright: ignore[reportArgumentType]
    return Cell(variant("34-wrong"), model, Rule(), training, Seeds())


def test_operations_by_hand() -> None:
    """One layer, counted map by map."""
    model = ModelConfig(n_layers=1, d_model=8, d_k=4, d_v=4, d_ff=16, n_heads=2)
    cell = _cell(model, batch=3, steps=5)
    tokens = 3 * 9
    maps = 3 * (8 * 8) + 8 * 8 + 2 * 8 * 16
    attention = 2 * 2 * 9 * 4
    forward = tokens * (2 * maps + 2 * attention) + 3 * 2 * 8 * 128
    assert step_operations(cell) == 3 * forward
    assert cost(cell).operations == 5 * 3 * forward
    more = _cell(replace(model, activation="swiglu"), batch=3, steps=5)
    assert step_operations(more) - step_operations(cell) == 3 * tokens * 2 * 8 * 16
    everywhere = _cell(model, batch=3, steps=5, loss="all")
    assert step_operations(everywhere) - step_operations(cell) == 3 * (tokens - 3) * 2 * 8 * 128


def test_speed_and_time(config: StudyConfig) -> None:
    cell = cells(config)[0]
    speed = measure_speed(cell, seconds=0.05, threads=1)
    assert 1e6 < speed < 1e15
    assert cost(cell).seconds(speed) > cost(cell).operations / speed


@pytest.mark.parametrize("device", ["foo", "", "cuda:", "cuda:x", "cpu:0", 5, None, "mps\n"])
def test_a_device_that_is_none_is_said_before_anything_is_written(
    config: StudyConfig, tmp_path: Path, device: Any
) -> None:
    with pytest.raises(InputError, match="expected 'cpu', 'cuda'"):
        plan_execution(config, device=device)
    if device is not None:
        with pytest.raises(InputError, match="device is"):
            run(config, tmp_path / "s", device=device)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [{"device": "cuda:999"}, {"dtype": "float16"}])
def test_what_this_machine_lacks_is_said_before_anything_is_written(
    config: StudyConfig, tmp_path: Path, options: Any
) -> None:
    with pytest.raises(InputError, match=r"torch finds|unknown dtype"):
        run(config, tmp_path / "s", **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("limit", [1e308, 10**400, 1.1e9, float("inf"), float("nan"), 0, True])
def test_a_memory_limit_has_bounds(config: StudyConfig, limit: Any) -> None:
    with pytest.raises(InputError, match="the memory limit is") as caught:
        plan_execution(config, memory_limit=limit)
    assert len(str(caught.value)) < 200


def test_the_largest_memory_limit(config: StudyConfig) -> None:
    assert plan_execution(config, memory_limit=1e9).buckets


def test_a_plan_is_replayed(config: StudyConfig, tmp_path: Path) -> None:
    """The file of another folder gives its buckets, and the options beside it are refused."""
    limit = 1.5 * max(cost(cell).memory for cell in cells(config)) / 2**30
    first = run(config, tmp_path / "a", memory_limit=limit, threads=1, train=standin.train)
    assert len(first.plan.buckets) > len(plan_execution(config).buckets)
    plan = read_plan(tmp_path / "a" / "execution.json")
    again = run(config, tmp_path / "b", plan=plan, train=standin.train)
    assert again.plan == first.plan != plan_execution(config)
    assert run(config, tmp_path / "b", plan=plan, train=standin.train).plan == plan
    beside: list[dict[str, Any]] = [{"threads": 2}, {"dtype": "float64"}, {"memory_limit": 1.0}]
    for options in beside:
        with pytest.raises(InputError, match="which says it too: give one of the two"):
            run(config, tmp_path / "c", plan=plan, train=standin.train, **options)
    with pytest.raises(InputError, match="begun with another execution plan"):
        run(config, tmp_path / "b", plan=plan_execution(config), train=standin.train)
    with pytest.raises(InputError, match="is of other cells than the study"):
        run(replace(config, seeds=(9,)), tmp_path / "c", plan=plan, train=standin.train)
    with pytest.raises(InputError, match="expected an ExecutionPlan"):
        run(config, tmp_path / "c", plan="a", train=standin.train)  # pyright: ignore[reportArgumentType]
    mixed = replace(
        plan, buckets=(PlannedBucket("0000-00000000", tuple(p.id for p in grid(config))),)
    )
    with pytest.raises(InputError, match="cells of several shapes in the bucket 0000-00000000"):
        run(config, tmp_path / "c", plan=mixed, train=standin.train)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [("[]", "holds no table"), ("{", "is not JSON"), ("{}", "expected the keys"), (None, "cannot")],
)
def test_a_file_that_is_no_plan(text: str | None, words: str, tmp_path: Path) -> None:
    file = tmp_path / "execution.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        read_plan(file)
    assert "\n" not in str(caught.value)

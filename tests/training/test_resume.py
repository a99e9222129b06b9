"""Repeats, interruptions and other processes: the same bits."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from initrate.errors import StoreError
from initrate.model import ModelConfig
from initrate.rule import Rule
from initrate.training import (
    Bucket,
    BucketResult,
    Execution,
    Interrupted,
    Lane,
    Progress,
    Seeds,
    Training,
    train,
    window,
)
from tests.training.random_task import RandomTask

STEPS = 24
EXECUTION = Execution(threads=1)
CONFIG = ModelConfig(d_model=12, n_heads=2, d_k=4, d_v=4, d_ff=16, max_positions=8, biases="all")


def bucket(optimizer: str = "adamw", *, wild: bool = False) -> Bucket:
    """Return three lanes; the last may diverge on the way."""
    lanes = []
    for index in range(3):
        training = Training(
            steps=STEPS,
            batch=6,
            log_every=3,
            warmup_steps=5,
            lr=9e29 if wild and index == 2 else 0.01,
            decay_schedule=window(4, 15),
            clip_norm=None if wild and index == 2 else 1.0,
            optimizer=optimizer,  # pyright: ignore[reportArgumentType]
        )
        rule = Rule(gamma=0.3 + 0.2 * index, bias="torch")
        lanes.append(Lane(f"{index:012x}", rule, training, Seeds.all(index)))
    return Bucket(RandomTask(), CONFIG, tuple(lanes))


def digest(result: BucketResult) -> str:
    """Return a hash of every number that came out but the time that it took."""
    lanes = json.dumps([asdict(lane) for lane in result.lanes], sort_keys=True)
    state = hashlib.sha256(lanes.encode())
    for name in sorted(result.weights):
        state.update(name.encode() + np.ascontiguousarray(result.weights[name]).tobytes())
    return state.hexdigest()


def stop_after(n_asked: int) -> Callable[[], bool]:
    """Return a `should_stop` that says yes from the given time of asking on."""
    asked = 0

    def should_stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > n_asked

    return should_stop


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_repeat_gives_the_same_bits(optimizer: str, threads: int) -> None:
    execution = Execution(threads=threads)
    once, again = (train(bucket(optimizer), execution) for _ in range(2))
    assert digest(once) == digest(again)


def test_another_recipe_gives_other_bits() -> None:
    """The digest sees what it should see."""
    assert digest(train(bucket("adamw"), EXECUTION)) != digest(train(bucket("sgd"), EXECUTION))


def test_another_process_gives_the_same_bits() -> None:
    code = (
        "from tests.training.test_resume import EXECUTION, bucket, digest, train;"
        "print(digest(train(bucket(), EXECUTION)))"
    )
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    child = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert child.stdout.strip() == digest(train(bucket(), EXECUTION))


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
@pytest.mark.parametrize(("wild", "threads"), [(False, 1), (True, 2)])
@pytest.mark.parametrize("n_asked", [0, 1, 5])
def test_resuming_gives_the_same_bits(
    tmp_path: Path, optimizer: str, wild: bool, threads: int, n_asked: int
) -> None:
    execution = Execution(threads=threads)
    whole = train(bucket(optimizer, wild=wild), execution)
    checkpoint = tmp_path / "bucket.checkpoint"
    with pytest.raises(Interrupted):
        train(
            bucket(optimizer, wild=wild),
            execution,
            should_stop=stop_after(n_asked),
            checkpoint=checkpoint,
        )
    assert checkpoint.is_file()
    resumed = train(bucket(optimizer, wild=wild), execution, checkpoint=checkpoint)
    assert digest(resumed) == digest(whole)
    assert resumed.lanes[2].diverged == wild


def test_stopping_again_and_again_gets_there(tmp_path: Path) -> None:
    checkpoint = tmp_path / "bucket.checkpoint"
    n_stops = 0
    while True:
        try:
            result = train(bucket(), EXECUTION, should_stop=stop_after(2), checkpoint=checkpoint)
            break
        except Interrupted:
            n_stops += 1
            assert n_stops <= STEPS
    assert n_stops >= 2
    assert digest(result) == digest(train(bucket(), EXECUTION))


def test_a_resumed_bucket_does_not_begin_again(tmp_path: Path) -> None:
    checkpoint = tmp_path / "bucket.checkpoint"
    seen: list[int] = []

    def note(progress: Progress) -> None:
        seen.append(progress.step)

    def should_stop() -> bool:
        return len(seen) >= 4

    with pytest.raises(Interrupted):
        train(bucket(), EXECUTION, on_progress=note, should_stop=should_stop, checkpoint=checkpoint)
    n_before, last = len(seen), seen[-1]
    train(bucket(), EXECUTION, on_progress=note, checkpoint=checkpoint)
    assert min(seen[n_before:]) > last


def test_a_killed_run_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    """An error of the caller stands for the kill: no chance to write anything at the end."""
    checkpoint = tmp_path / "bucket.checkpoint"
    often = Execution(threads=1, checkpoint_seconds=0.0)

    def break_off(progress: Progress) -> None:
        if progress.step > STEPS // 2:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        train(bucket(), often, on_progress=break_off, checkpoint=checkpoint)
    assert checkpoint.is_file()
    resumed = train(bucket(), often, checkpoint=checkpoint)
    assert digest(resumed) == digest(train(bucket(), EXECUTION))


def test_a_foreign_or_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "bucket.checkpoint"
    with pytest.raises(Interrupted):
        train(bucket(), EXECUTION, should_stop=stop_after(0), checkpoint=checkpoint)
    whole = checkpoint.read_bytes()
    with pytest.raises(StoreError, match="holds another bucket"):
        train(bucket("sgd"), EXECUTION, checkpoint=checkpoint)
    assert checkpoint.read_bytes() == whole
    for damaged in (b"", whole[:-1], whole[:-4] + bytes(4), whole[:40]):
        checkpoint.write_bytes(damaged)
        with pytest.raises(StoreError, match="damaged"):
            train(bucket(), EXECUTION, checkpoint=checkpoint)


@pytest.mark.parametrize(
    ("kind", "n_bytes"), [("BF16", 2), ("F8_E4M3", 1), ("F8_E5M2", 1), ("F8_E8M0", 1), ("C64", 8)]
)
def test_a_checkpoint_of_types_that_numpy_lacks_is_damaged(
    tmp_path: Path, kind: str, n_bytes: int
) -> None:
    checkpoint = tmp_path / "bucket.checkpoint"
    tensor = {"dtype": kind, "shape": [4], "data_offsets": [0, 4 * n_bytes]}
    header = json.dumps({"weights": tensor}).encode()
    checkpoint.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4 * n_bytes))
    with pytest.raises(StoreError, match="damaged") as caught:
        train(bucket(), EXECUTION, checkpoint=checkpoint)
    assert "\n" not in str(caught.value)

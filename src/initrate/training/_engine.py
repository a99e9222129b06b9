"""The engine: trains one bucket as one batched program."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from initrate.errors import InputError
from initrate.model import initialize, tensor_specs
from initrate.rule import kept_memory
from initrate.training._bucket import Bucket, BucketResult, Execution, Interrupted, Progress
from initrate.training._checkpoint import Log, load_checkpoint, save_checkpoint
from initrate.training._data import Batches
from initrate.training._device import device_of, dtype_of, threads
from initrate.training._evaluate import Evaluator
from initrate.training._optimizer import State
from initrate.training._result import add_curve_rows, bucket_result
from initrate.training._step import stepping


def train(
    bucket: Bucket,
    execution: Execution | None = None,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    checkpoint: Path | None = None,
) -> BucketResult:
    """Return what came out of training every lane of the bucket to its last step.

    With `checkpoint`, the running state is written there about every minute and when
    `should_stop` is true (then `Interrupted` is raised); a file that is there is gone on from, and
    the result has the bits of an undisturbed run. A lane whose loss or gradient is no longer
    finite moves no more; its neighbours' bits do not change.
    """
    execution = execution or Execution()
    with threads(execution), kept_memory():
        return _train(bucket, execution, on_progress, should_stop, checkpoint)


def _train(
    bucket: Bucket,
    execution: Execution,
    on_progress: Callable[[Progress], None] | None,
    should_stop: Callable[[], bool] | None,
    checkpoint: Path | None,
) -> BucketResult:
    training = bucket.lanes[0].training
    state, log, first_step = _start(bucket, execution, checkpoint)
    weights = state.views(state.weights)
    batches = Batches(bucket, state.weights.device)
    evaluator = Evaluator.of(bucket, exhaustive=False)
    began = saved = time.monotonic()
    seconds_before = log.seconds

    def record(step: int) -> None:
        add_curve_rows(bucket, log, step, evaluator.evaluate(weights))
        if on_progress is not None:
            rows = [curve[-1] for curve in log.curves]
            on_progress(Progress(step, training.steps, time.monotonic() - began, rows))

    if first_step == 0:
        record(0)
    with stepping(bucket, state, execution) as take_step:
        for step in range(first_step, training.steps):
            if all(diverged is not None for diverged in log.diverged_step):
                break
            moving = [diverged is None for diverged in log.diverged_step]
            log.add(step, take_step(step, *batches.at(step), moving))
            done = step + 1
            if done % training.log_every == 0 or done == training.steps:
                record(done)
            stop = should_stop is not None and should_stop()
            now = time.monotonic()
            if checkpoint is not None and (stop or now - saved > execution.checkpoint_seconds):
                log.seconds, saved = seconds_before + now - began, now
                save_checkpoint(
                    checkpoint,
                    bucket=_identity(bucket, execution),
                    step=done,
                    tensors=_tensors(state),
                    log=log,
                )
            if stop:
                raise Interrupted(f"stopped after step {done} of {training.steps}")
    final = Evaluator.of(bucket, exhaustive=True).evaluate(weights)
    log.seconds = seconds_before + time.monotonic() - began
    return bucket_result(bucket, weights, final, log)


def _start(bucket: Bucket, execution: Execution, checkpoint: Path | None) -> tuple[State, Log, int]:
    """Return state, log and the first step to take: of the checkpoint, or of fresh weights."""
    device, dtype = device_of(execution), dtype_of(execution)
    lanes, vocabulary = bucket.lanes, bucket.task.vocabulary
    if bucket.model.positions == "learned" and bucket.task.length > bucket.model.max_positions:
        raise InputError(
            f"the task has {bucket.task.length} tokens a sequence and the model only "
            f"{bucket.model.max_positions} positions: raise max_positions"
        )
    if any(not 0 <= p < bucket.task.length for p in lanes[0].training.loss_positions):
        raise InputError(
            f"loss_positions {lanes[0].training.loss_positions}: expected positions from 0 to "
            f"{bucket.task.length - 1}"
        )
    specs = tensor_specs(bucket.model, vocabulary)
    n_moments = 2 if lanes[0].training.optimizer == "adamw" else 1
    if checkpoint is not None and checkpoint.exists():
        first_step, stored, log = load_checkpoint(checkpoint, bucket=_identity(bucket, execution))
        flat = [stored[name].to(device, dtype) for name in _STATE[: 1 + n_moments]]
    else:
        drawn = initialize(
            bucket.model, vocabulary, [x.rule for x in lanes], [x.seeds.init for x in lanes]
        )
        parts = [torch.from_numpy(drawn[spec.name]).flatten(1) for spec in specs]
        weights = torch.cat(parts, 1).to(device, dtype)
        flat = [weights, *(torch.zeros_like(weights) for _ in range(n_moments))]
        log = Log([[] for _ in lanes], [None] * len(lanes), [0.0] * len(lanes))
        first_step = 0
    second = flat[2] if n_moments == 2 else None
    return State(flat[0], torch.zeros_like(flat[0]), flat[1], second, specs), log, first_step


_STATE = ("weights", "first_moment", "second_moment")


def _tensors(state: State) -> dict[str, Tensor]:
    found = (state.weights, state.first_moment, state.second_moment)
    return {name: tensor for name, tensor in zip(_STATE, found, strict=True) if tensor is not None}


def _identity(bucket: Bucket, execution: Execution) -> str:
    """What makes a checkpoint this bucket's: its cells in order, all that they are, their type."""
    return hashlib.sha256(repr((bucket, execution.dtype)).encode()).hexdigest()

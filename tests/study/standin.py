"""A stand-in for the engine: it trains nothing, but its results, checkpoints and stops are real.

What it returns is a pure function of the lane, as the engine's results are, so that runs that
were killed can be compared with runs that were not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from initrate.model import tensor_specs
from initrate.tasks import Score
from initrate.training import (
    Bucket,
    BucketResult,
    Execution,
    Lane,
    LaneResult,
    Progress,
)

N_UNSEEN = 400


def train(
    bucket: Bucket,
    execution: Execution,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    checkpoint: Path | None = None,
) -> BucketResult:
    """Return made-up results of all lanes, step by step from the checkpoint on."""
    training = bucket.lanes[0].training
    first = json.loads(checkpoint.read_text())["step"] if checkpoint and checkpoint.exists() else 0
    for step in range(first, training.steps + 1, training.log_every):
        if checkpoint:
            checkpoint.write_text(json.dumps({"step": step}))
        if should_stop and should_stop():
            from initrate.training import Interrupted  # It comes with torch.

            raise Interrupted("stopped")
        if on_progress:
            scores = [curve_row(lane, step) for lane in bucket.lanes]
            on_progress(Progress(step, training.steps, 0.01 * (step - first), scores))
    specs = tensor_specs(bucket.model, bucket.task.vocabulary)
    weights = {
        spec.name: np.stack([_weight(lane, spec.name, spec.shape) for lane in bucket.lanes])
        for spec in specs
    }
    return BucketResult(tuple(result(lane) for lane in bucket.lanes), weights, seconds=1.5)


def result(lane: Lane) -> LaneResult:
    """Return what the stand-in makes of a lane."""
    steps = range(0, lane.training.steps + 1, lane.training.log_every)
    scalars = scores(lane, lane.training.steps)
    pair = {"split": "unseen", "pair": "4,3"}
    return LaneResult(
        cell=lane.cell,
        score=Score(
            scalars,
            [{**pair, "by": "all", "index": 0, "n": N_UNSEEN, "correct": 3, "composed": 3}],
            [{**pair, "shift": -10, "n": 3}],
        ),
        curve=[curve_row(lane, step) for step in steps],
        tensors=[{"tensor": "token_embedding.weight", "role": "token_embedding", "d_in": 16}],
        scalars={
            "sum_lr": lane.training.lr * lane.training.steps,
            "sum_lr_weight_decay": 0.1,
            "final_training_loss": 0.5 + unit(lane, "loss"),
            "block_to_skip": 1.0,
        },
        diverged=False,
        diverged_step=None,
    )


def curve_row(lane: Lane, step: int) -> dict[str, float | int | None]:
    """Return the row of a lane's curve at a step."""
    return {"step": step, "loss": 4.0 / (1 + step), "lr": lane.training.lr, **scores(lane, step)}


def scores(lane: Lane, step: int) -> dict[str, float | int | None]:
    """Return scalars of which the composed share is drawn by lane and step."""
    composed = unit(lane, f"composed {step}")
    return {
        "training_accuracy": 1.0,
        "seen_accuracy": 0.95,
        "inferential_accuracy": composed,
        "symmetric_accuracy": 0.5 * (1 - composed),
        "probe_accuracy": None,
        "commutes": None,
        "n_unseen": N_UNSEEN,
        "unseen_composed": round(N_UNSEEN * composed),
        "unseen_mirrored": 10,
        "unseen_top_shift": -3,
        "unseen_top_shift_n": 5,
        "probe_n": 0,
        "probe_composed": 0,
    }


def unit(lane: Lane, what: str) -> float:
    """Return a number from 0 to 1 that is one for a lane and a word."""
    key = f"{lane.cell} {what}".encode()
    return int.from_bytes(hashlib.sha256(key).digest()[:4]) / 2**32


def _weight(lane: Lane, name: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.full(shape, unit(lane, name), dtype=np.float32)

"""What came out of a bucket: curves while it runs, and the results of every lane at the end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from initrate.model import block_to_skip, initialize, tensor_specs
from initrate.rule import tensor_d_in, tensor_std
from initrate.training._bucket import Bucket, BucketResult, Lane, LaneResult
from initrate.training._checkpoint import Log
from initrate.training._evaluate import Evaluation
from initrate.training._schedule import learning_rate, shrinkage, weight_decay


def add_curve_rows(bucket: Bucket, log: Log, step: int, found: Sequence[Evaluation]) -> None:
    """Append to each lane's curve what is known after `step` updates, and start new sums."""
    for i, (lane, evaluation) in enumerate(zip(bucket.lanes, found, strict=True)):
        diverged = log.diverged_step[i] is not None
        # Before the first update there is neither a batch nor a learning rate.
        trained = log.n_losses > 0 and not diverged
        log.curves[i].append(
            {
                "step": step,
                "loss": log.loss_sum[i] / log.n_losses if trained else None,
                "training_loss": _finite(evaluation.training_loss),
                "lr": learning_rate(lane.training, step - 1) if trained else None,
                "weight_decay": weight_decay(lane.training, step - 1) if trained else None,
                "gradient_norm": _finite(log.last_norm[i]) if trained else None,
                **evaluation.score.scalars,
            }
        )
    log.loss_sum = [0.0] * len(bucket.lanes)
    log.n_losses = 0


def bucket_result(
    bucket: Bucket, weights: Mapping[str, Tensor], final: Sequence[Evaluation], log: Log
) -> BucketResult:
    """Return the result of every lane from the final weights and the log."""
    stacked = {
        name: tensor.detach().to("cpu", torch.float32).numpy().copy()
        for name, tensor in weights.items()
    }
    lanes, vocabulary = bucket.lanes, bucket.task.vocabulary
    initial = initialize(
        bucket.model, vocabulary, [x.rule for x in lanes], [x.seeds.init for x in lanes]
    )
    ratios = _block_to_skip(bucket, initial)
    results = tuple(
        LaneResult(
            cell=lane.cell,
            score=final[i].score,
            curve=log.curves[i],
            tensors=_tensor_rows(
                bucket,
                lane,
                {name: tensor[i] for name, tensor in initial.items()},
                {name: tensor[i] for name, tensor in stacked.items()},
            ),
            scalars={
                **_sums(lane, log.diverged_step[i]),
                "final_training_loss": _finite(final[i].training_loss),
                "block_to_skip": _finite(ratios[i]),
            },
            diverged=log.diverged_step[i] is not None,
            diverged_step=log.diverged_step[i],
        )
        for i, lane in enumerate(lanes)
    )
    return BucketResult(results, stacked, log.seconds)


def _sums(lane: Lane, diverged_step: int | None) -> dict[str, float]:
    """How far the lane was pushed: cells of equal sums are comparable, not those of equal lr."""
    training = lane.training
    steps = range(training.steps if diverged_step is None else diverged_step)
    return {
        "sum_lr": math.fsum(learning_rate(training, step) for step in steps),
        "sum_lr_weight_decay": math.fsum(shrinkage(training, step) for step in steps),
    }


def _block_to_skip(bucket: Bucket, initial: Mapping[str, np.ndarray]) -> list[float]:
    """The ratio at initialization on the first 32 sequences of the evaluation's training split."""
    seeds = bucket.lanes[0].seeds
    splits = bucket.task.evaluation(seed=seeds.evaluation, pool_seed=seeds.pool, exhaustive=False)
    tokens = torch.from_numpy(splits[0].tokens[:32])
    weights = {name: torch.from_numpy(tensor) for name, tensor in initial.items()}
    with torch.inference_mode():
        every = tokens.expand(len(bucket.lanes), *tokens.shape)
        return block_to_skip(bucket.model, weights, every).tolist()


def _tensor_rows(
    bucket: Bucket,
    lane: Lane,
    initial: Mapping[str, np.ndarray],
    final: Mapping[str, np.ndarray],
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for spec in tensor_specs(bucket.model, bucket.task.vocabulary):
        # A lane that diverged may hold what is not finite: its numbers are None, not a warning.
        before = initial[spec.name].astype(np.float64)
        after = final[spec.name].astype(np.float64)
        d_in = tensor_d_in(lane.rule, spec)
        # A norm's gain has no draw: its spread says nothing about sigma.
        drawn = tensor_std(lane.rule, spec, n_layers=bucket.model.n_layers)
        rows.append(
            {
                "tensor": spec.name,
                "role": spec.role,
                "d_in": d_in,
                "target_std": drawn,
                "init_std": float(before.std()),
                "final_std": _finite(float(after.std())),
                "sigma_sqrt_d": float(before.std() * math.sqrt(d_in)),
                "init_norm": float(np.linalg.norm(before)),
                "final_norm": _finite(float(np.linalg.norm(after))),
                "update_norm": _finite(float(np.linalg.norm(after - before))),
            }
        )
    return rows


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None

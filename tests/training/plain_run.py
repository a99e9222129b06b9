"""One lane of a bucket trained the plain way, on the same sequences and from the same weights."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from initrate.bench import PlainDecoder, plain_optimizer, plain_step
from initrate.model import initialize
from initrate.training import Bucket

DTYPES = {"float32": torch.float32, "float64": torch.float64}


def plain_run(
    bucket: Bucket, lane_index: int, *, dtype: str = "float32"
) -> tuple[list[float], dict[str, NDArray[np.floating]]]:
    """Return the loss before each update of one lane, and its weights after the last."""
    lane, task = bucket.lanes[lane_index], bucket.task
    drawn = initialize(bucket.model, task.vocabulary, [lane.rule], [lane.seeds.init])
    model = PlainDecoder(bucket.model, task.vocabulary).to(DTYPES[dtype])
    model.load_canonical({name: array[0] for name, array in drawn.items()})
    optimizer = plain_optimizer(model, lane.training)
    tokens, targets = task.training_batches(
        pool_seed=lane.seeds.pool,
        order_seed=lane.seeds.order,
        first_step=0,
        n_steps=lane.training.steps,
        batch=lane.training.batch,
    )
    losses = [
        plain_step(
            model,
            optimizer,
            training=lane.training,
            step=step,
            tokens=torch.from_numpy(tokens[step]),
            targets=torch.from_numpy(targets[step]),
        )
        for step in range(lane.training.steps)
    ]
    return losses, model.canonical()

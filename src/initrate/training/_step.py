"""One step of a bucket: its models in as many groups as there are threads."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from initrate.training._bucket import Bucket, Execution, Lane
from initrate.training._device import precision
from initrate.training._loss import losses
from initrate.training._optimizer import State, decay_mask, update

Step = Callable[[int, Tensor, Tensor, Sequence[bool]], list[tuple[float, float]]]
"""(step, tokens, targets, which lanes still move) -> loss and gradient norm of every lane."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Neighbouring lanes, one batched program, with their rows of the state."""

    rows: slice
    lanes: tuple[Lane, ...]
    state: State
    weights: dict[str, Tensor]


@contextlib.contextmanager
def stepping(bucket: Bucket, state: State, execution: Execution) -> Iterator[Step]:
    """Yield the function that takes one step of every lane in place.

    A thread that has whole models to itself never waits for another inside a product, so the models
    are dealt out to the threads first, and only threads that are left over share a product.
    """
    n_threads = execution.threads or torch.get_num_threads()
    groups = _groups(bucket, state, n_threads if state.weights.device.type == "cpu" else 1)
    training = bucket.lanes[0].training
    mask = decay_mask(training, state.specs, state.weights)

    def take(
        group: _Group, step: int, tokens: Tensor, targets: Tensor, moving: Sequence[bool]
    ) -> list[tuple[float, float]]:
        with precision(execution):
            each = losses(
                bucket.model, training, group.weights, tokens[group.rows], targets[group.rows]
            )
        # A key bias of the last layer moves nothing, for softmax takes it away: it is unused.
        gradients = torch.autograd.grad(
            each.sum(), list(group.weights.values()), allow_unused=True, materialize_grads=True
        )
        rows = group.state.gradients
        torch.cat([gradient.flatten(1) for gradient in gradients], 1, out=rows)
        norms = torch.stack([torch.linalg.vector_norm(row) for row in rows]).tolist()
        found = list(zip(each.tolist(), norms, strict=True))
        moves = moving[group.rows]
        for i, (lane, (loss, norm)) in enumerate(zip(group.lanes, found, strict=True)):
            if moves[i] and math.isfinite(loss) and math.isfinite(norm):
                update(group.state, lane.training, i, step, gradient_norm=norm, mask=mask)
        return found

    if len(groups) == 1:
        yield lambda *step: take(groups[0], *step)
        return
    left_over = max(1, n_threads // len(groups))
    with ThreadPoolExecutor(
        len(groups), initializer=torch.set_num_threads, initargs=(left_over,)
    ) as pool:
        yield lambda *step: [
            lane for part in pool.map(lambda group: take(group, *step), groups) for lane in part
        ]


def _groups(bucket: Bucket, state: State, n_threads: int) -> list[_Group]:
    n_groups = min(n_threads, len(bucket.lanes))
    edges = [len(bucket.lanes) * i // n_groups for i in range(n_groups + 1)]
    groups: list[_Group] = []
    for first, end in itertools.pairwise(edges):
        rows = slice(first, end)
        own = state.rows(rows)
        weights = {
            name: view.detach().requires_grad_() for name, view in own.views(own.weights).items()
        }
        groups.append(_Group(rows, bucket.lanes[rows], own, weights))
    return groups

"""The training data of a bucket, drawn in chunks of steps, as torch tensors."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from initrate.training._bucket import Bucket

_CHUNK_STEPS = 64


@dataclass(slots=True)
class Batches:
    """The batches of every lane. Lanes with equal pool and order seeds share theirs.

    The batch of a step depends on the seeds and the step alone, so that a resumed run sees what
    the undisturbed one saw.
    """

    bucket: Bucket
    device: torch.device
    _first_step: int = -1
    _tokens: Tensor = field(default_factory=lambda: torch.empty(0))
    _targets: Tensor = field(default_factory=lambda: torch.empty(0))

    def at(self, step: int) -> tuple[Tensor, Tensor]:
        """Return tokens [M, B, T] and targets [M, B] of this step."""
        first_step = step - step % _CHUNK_STEPS
        if first_step != self._first_step:
            self._load(first_step)
        return self._tokens[:, step - first_step], self._targets[:, step - first_step]

    def _load(self, first_step: int) -> None:
        training = self.bucket.lanes[0].training
        n_steps = min(_CHUNK_STEPS, training.steps - first_step)
        streams = [(lane.seeds.pool, lane.seeds.order) for lane in self.bucket.lanes]
        drawn = {
            stream: self.bucket.task.training_batches(
                pool_seed=stream[0],
                order_seed=stream[1],
                first_step=first_step,
                n_steps=n_steps,
                batch=training.batch,
            )
            for stream in dict.fromkeys(streams)
        }
        if len(drawn) == 1:
            # One stream: a view of it for every model, not a copy.
            tokens, targets = (torch.from_numpy(part) for part in drawn[streams[0]])
            tokens = tokens.to(self.device).expand(len(streams), *tokens.shape)
            targets = targets.to(self.device).expand(len(streams), *targets.shape)
        else:
            tokens = torch.stack([torch.from_numpy(drawn[s][0]) for s in streams]).to(self.device)
            targets = torch.stack([torch.from_numpy(drawn[s][1]) for s in streams]).to(self.device)
        self._tokens, self._targets, self._first_step = tokens, targets, first_step

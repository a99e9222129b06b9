"""Answers of all models of a bucket to the splits of a task, and their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from initrate.model import ModelConfig, logits
from initrate.tasks import Integers, Score, Split
from initrate.training._bucket import Bucket
from initrate.training._loss import cross_entropy

# Activations of one chunk of sequences stay below about this many numbers.
_CHUNK_NUMBERS = 2**23


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The score of one model and its mean loss on the training split, in nats."""

    score: Score
    training_loss: float


@dataclass(frozen=True, slots=True)
class Evaluator:
    """The splits of every lane, drawn once; lanes with equal seeds share them."""

    bucket: Bucket
    splits: Mapping[tuple[int, int], tuple[Split, ...]]

    @classmethod
    def of(cls, bucket: Bucket, *, exhaustive: bool) -> Evaluator:
        """Return the evaluator of a bucket: the exhaustive splits, or the small ones."""
        keys = dict.fromkeys((lane.seeds.evaluation, lane.seeds.pool) for lane in bucket.lanes)
        drawn = {
            key: bucket.task.evaluation(seed=key[0], pool_seed=key[1], exhaustive=exhaustive)
            for key in keys
        }
        return cls(bucket, drawn)

    def evaluate(self, weights: Mapping[str, Tensor]) -> tuple[Evaluation, ...]:
        """Return the evaluation of every lane; weights are [n_lanes, *shape]."""
        lanes = self.bucket.lanes
        out: dict[int, Evaluation] = {}
        for key, splits in self.splits.items():
            rows = [
                i for i, lane in enumerate(lanes) if (lane.seeds.evaluation, lane.seeds.pool) == key
            ]
            part = weights
            if len(rows) < len(lanes):
                part = {name: tensor[rows] for name, tensor in weights.items()}
            answers = [answer(self.bucket.model, part, split) for split in splits]
            training = [split.name for split in splits].index("training")
            for i, row in enumerate(rows):
                score = self.bucket.task.score(splits, [found[i] for found, _ in answers])
                out[row] = Evaluation(score, float(answers[training][1][i]))
        return tuple(out[i] for i in range(len(lanes)))


@torch.inference_mode()
def answer(
    config: ModelConfig, weights: Mapping[str, Tensor], split: Split
) -> tuple[Integers, Sequence[float]]:
    """Return each model's answers [M, n_sequences] and its mean loss on the split's targets."""
    embedding = weights["token_embedding.weight"]
    n_models, n_sequences = embedding.shape[0], len(split.tokens)
    widest = max(config.d_ff, config.d_model, config.n_heads * (2 * config.d_k + config.d_v))
    chunk = max(16, _CHUNK_NUMBERS // (n_models * split.tokens.shape[1] * widest))
    found: list[Tensor] = []
    loss = torch.zeros(n_models, dtype=torch.float64)
    for first in range(0, n_sequences, chunk):
        part = slice(first, first + chunk)
        tokens = torch.from_numpy(split.tokens[part]).to(embedding.device)
        targets = torch.from_numpy(split.targets[part]).to(embedding.device)
        out = logits(config, weights, tokens.expand(n_models, *tokens.shape))
        found.append(out.argmax(-1))
        mean = cross_entropy(out, targets.expand(n_models, *targets.shape))
        loss += mean.to("cpu", torch.float64) * len(targets)
    answers = torch.cat(found, 1).cpu().numpy().astype(np.int64)
    return answers, (loss / n_sequences).tolist()

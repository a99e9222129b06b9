"""Floors of the training loss: what a model reaches that ignores part of the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from initrate.tasks._maps import tables
from initrate.tasks._split import key_cells

if TYPE_CHECKING:
    from initrate.tasks._anchor import AnchorTask

Floats = NDArray[np.float64]


def key_shares(task: AnchorTask) -> Floats:
    """Return how often each key comes in training, [n_keys]."""
    training, _ = key_cells(task)
    shares = 1.0 / (task.n_positions * training.counts[training.positions])
    n_keys = task.key_high - task.key_low + 1
    return np.bincount(training.keys - task.key_low, weights=shares, minlength=n_keys).astype(
        np.float64
    )


def loss_floors(task: AnchorTask) -> dict[str, float]:
    """Return the least mean loss in nats of models that use part of the input alone.

    `no_input`: the entropy of the answer, where a dead run stays; `pair_only`: all anchors but no
    key; `key_only`; `key_and_one_anchor`: the key and whichever single anchor says most. The floor
    of the whole input is 0, since it determines the answer.

    >>> from initrate.tasks import variant
    >>> {name: round(floor, 2) for name, floor in loss_floors(variant("without-34")).items()}
    {'no_input': 4.52, 'pair_only': 4.38, 'key_only': 2.14, 'key_and_one_anchor': 1.26}
    """
    known = tables(task)
    answers = known.targets[list(known.seen)]
    weight = np.tile(key_shares(task) / len(answers), (len(answers), 1))
    keys = np.arange(len(known.keys))
    pairs = np.array([known.pairs[row] for row in known.seen], dtype=np.int64)

    def floor(given: NDArray[np.int64]) -> float:
        """H(answer | given) = H(answer, given) - H(given)."""
        width = int(answers.max()) + 1
        joint = given * width + answers
        return _entropy(joint, weight) - _entropy(given, weight)

    nothing = np.zeros_like(answers)
    pair = nothing + np.arange(len(answers))[:, None]
    key = nothing + keys
    return {
        "no_input": floor(nothing),
        "pair_only": floor(pair),
        "key_only": floor(key),
        "key_and_one_anchor": min(
            floor(key + len(keys) * pairs[:, [place]]) for place in range(task.n_anchors)
        ),
    }


def _entropy(events: NDArray[np.int64], weight: Floats) -> float:
    _, slot = np.unique(events, return_inverse=True)
    shares = np.bincount(slot.ravel(), weights=weight.ravel())
    return float(-(shares * np.log(shares, where=shares > 0, out=np.zeros_like(shares))).sum())

"""The splits a model is asked: seen and unseen pairs with keys of training and test type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from initrate.tasks._maps import tables
from initrate.tasks._sequences import (
    Sequences,
    Words,
    below,
    noise_words,
    pool,
    stamped,
    training_sequences,
    training_words,
    words,
)
from initrate.tasks._split import KeyCells, key_cells
from initrate.tasks._task import Integers, Split

if TYPE_CHECKING:
    from initrate.tasks._anchor import AnchorTask

SPLITS = (
    "training",
    "seen",
    "seen_training_keys",
    "unseen",
    "unseen_test_keys",
    "mirror",
)
"""The names of all splits; those that would be empty are left out of an evaluation."""

_TRAINING = 2_048
_DRAWS = 8
_SAMPLE = 512


def evaluation(
    task: AnchorTask, *, seed: int, pool_seed: int, exhaustive: bool
) -> tuple[Split, ...]:
    """Return the splits to answer, a pure function of task and seeds.

    | split | pairs | keys | sequences, exhaustive | sample |
    |---|---|---|---|---|
    | training | seen | training | 2,048 of the training distribution, or of the pool | 512 |
    | seen | seen | test | every (key, position), 8 noise draws a pair | 512 |
    | seen_training_keys | seen | training | every (key, position), 1 draw a pair | 512 |
    | unseen | unseen, probe | training | every (key, position), 8 draws a pair | 512 a pair |
    | unseen_test_keys | unseen, probe | test | every (key, position), 8 draws a pair | 512 |
    | mirror | unseen pairs reversed, if seen | training | as in unseen | 512 a pair |

    In "unseen" and "mirror" every pair stands in the same surroundings: the i-th sequences of any
    two pairs have the same key, position and noise, so that answers compare one by one.

    >>> from initrate.tasks import variant
    >>> splits = variant("34-wrong").evaluation(seed=0, pool_seed=0, exhaustive=True)
    >>> {split.name: len(split.targets) for split in splits}["unseen"]
    3984
    """
    known = tables(task)
    training, test = key_cells(task)
    draws = _DRAWS if task.n_noise else 1

    def asked(name: str, rows: Sequence[int], cells: KeyCells, draws: int) -> Split:
        if exhaustive:
            key, position = np.tile(cells.keys, draws), np.tile(cells.positions, draws)
            pair = np.repeat(np.array(rows, dtype=np.int64), len(key))
            key, position = np.tile(key, len(rows)), np.tile(position, len(rows))
            noise = _noise(task, name, seed, len(pair))
        else:
            random = _words(name, seed, _SAMPLE, 1 + noise_words(task))
            cell = below(cells.n_cells, random[:, 0])
            key, position, noise = cells.keys[cell], cells.positions[cell], random[:, 1:]
            pair = np.array(rows, dtype=np.int64)[np.arange(_SAMPLE) % len(rows)]
        return _split(task, name, stamped(task, pair=pair, key=key, position=position, noise=noise))

    found = [
        _split(task, "training", _training(task, seed, pool_seed, exhaustive)),
        asked("seen", known.seen, test, draws),
        asked("seen_training_keys", known.seen, training, 1),
    ]
    if known.unseen:
        key, position, noise = _surroundings(task, seed, training, draws if exhaustive else None)
        found.append(_surrounded(task, "unseen", known.unseen, key, position, noise))
        found.append(asked("unseen_test_keys", known.unseen, test, draws))
        if known.mirror:
            found.append(_surrounded(task, "mirror", known.mirror, key, position, noise))
    return tuple(found)


def _words(purpose: str, seed: int, n: int, width: int) -> Words:
    random = words(f"evaluation {purpose}", seeds=(seed,), block=0, n=n * width)
    return random.reshape(n, width)


def _noise(task: AnchorTask, purpose: str, seed: int, n: int) -> Words:
    return _words(purpose, seed, n, noise_words(task))


def _training(task: AnchorTask, seed: int, pool_seed: int, exhaustive: bool) -> Sequences:
    n = _TRAINING if exhaustive else _SAMPLE
    if task.pool is None:
        return training_sequences(task, _words("training", seed, n, training_words(task)))
    # The first of the pool: in turn one of every pair, and the same ones at every evaluation.
    whole, _ = pool(task, pool_seed)
    return Sequences(
        tokens=whole.tokens[:n].astype(np.int64),
        pair=whole.pair[:n].astype(np.int64),
        key=whole.key[:n].astype(np.int64),
        position=whole.position[:n].astype(np.int64),
    )


def _surroundings(
    task: AnchorTask, seed: int, cells: KeyCells, draws: int | None
) -> tuple[Integers, Integers, Words]:
    """Return keys, positions and noise: every cell so many times, or a sample that takes the
    positions in turn."""
    if draws is not None:
        key, position = np.tile(cells.keys, draws), np.tile(cells.positions, draws)
        return key, position, _noise(task, "unseen", seed, len(key))
    random = _words("unseen", seed, _SAMPLE, 1 + noise_words(task))
    position = np.arange(_SAMPLE, dtype=np.int64) % task.n_positions
    cell = cells.starts[position] + below(cells.counts[position], random[:, 0])
    return cells.keys[cell], position, random[:, 1:]


def _surrounded(
    task: AnchorTask,
    name: str,
    rows: Sequence[int],
    key: Integers,
    position: Integers,
    noise: Words,
) -> Split:
    pair = np.repeat(np.array(rows, dtype=np.int64), len(key))
    sequences = stamped(
        task,
        pair=pair,
        key=np.tile(key, len(rows)),
        position=np.tile(position, len(rows)),
        noise=np.tile(noise, (len(rows), 1)),
    )
    return _split(task, name, sequences)


def _split(task: AnchorTask, name: str, sequences: Sequences) -> Split:
    known = tables(task)
    cell = (sequences.pair, sequences.key - task.key_low)
    return Split(
        name=name,
        tokens=sequences.tokens,
        targets=known.targets[cell],
        columns={
            "pair": sequences.pair,
            "key": sequences.key,
            "position": sequences.position,
        },
        candidates={"composed": known.composed[cell], "mirrored": known.mirrored[cell]},
    )

"""Sequences from counter-based random words: the training stream and the training pool."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from initrate.errors import InputError
from initrate.tasks._maps import tables
from initrate.tasks._split import key_cells
from initrate.tasks._task import Integers

if TYPE_CHECKING:
    from initrate.tasks._anchor import AnchorTask

Words = NDArray[np.uint32]

_BLOCK = 8_192
"""Sequences of a pool drawn from one counter block."""


@dataclass(frozen=True, slots=True)
class Sequences:
    """Sequences and what they are made of; every array has one row a sequence."""

    tokens: NDArray[Any]
    """[n, length]"""
    pair: NDArray[Any]
    """Row of the pair in the task's tables."""
    key: NDArray[Any]
    position: NDArray[Any]
    """Index of the key in the sequence."""


def words(purpose: str, *, seeds: tuple[int, ...], block: int, n: int) -> Words:
    """Return n random 32-bit words of a block: a pure function of purpose, seeds and block.

    Raw Philox words, since these are the same in every release of NumPy; any two blocks or
    purposes are independent streams.
    """
    name = "\0".join(["initrate.tasks", purpose, *map(str, seeds)]).encode()
    digest = hashlib.blake2b(name, digest_size=16).digest()
    bits = np.random.Philox(
        key=np.frombuffer(digest, dtype="<u8").astype(np.uint64),
        counter=np.array([0, 0, block, 0], dtype=np.uint64),
    )
    raw = np.asarray(bits.random_raw((n + 1) // 2), dtype="<u8")
    return raw.view("<u4")[:n].astype(np.uint32, copy=False)


def below(limit: int | Integers, random: Words) -> Integers:
    """Return whole numbers below the limit (a number, or one a word), uniform to 1 in 2^32.

    >>> below(10, np.array([0, 2**31, 2**32 - 1], dtype=np.uint32)).tolist()
    [0, 5, 9]
    """
    scaled = random.astype(np.uint64)
    scaled *= np.asarray(limit, dtype=np.uint64)
    scaled >>= np.uint64(32)
    return scaled.view(np.int64)


def noise_words(task: AnchorTask) -> int:
    """Return how many random words the noise of one sequence takes."""
    return task.length if task.n_noise else 0


def stamped(
    task: AnchorTask, *, pair: Integers, key: Integers, position: Integers, noise: Words
) -> Sequences:
    """Return the sequences with these pairs and keys at these positions, noise elsewhere.

    `noise` is [n, noise_words(task)]; the places of key and anchors take a word as well, so that
    the noise at a place does not depend on where the key stands.
    """
    n = len(pair)
    if task.n_noise:
        tokens = below(task.noise_high - task.noise_low + 1, noise)
        tokens += task.noise_low
    else:
        tokens = np.empty((n, task.length), dtype=np.int64)
    rows = np.arange(n)
    tokens[rows, position] = key
    anchors = np.array(tables(task).pairs, dtype=np.int64)
    for offset in range(task.n_anchors):
        tokens[rows, position + 1 + offset] = anchors[pair, offset]
    return Sequences(tokens=tokens, pair=pair, key=key, position=position)


def training_sequences(task: AnchorTask, random: Words, pair: Integers | None = None) -> Sequences:
    """Return sequences of the training distribution, one from each row of random words.

    Uniform over seen pairs (unless they are given) and over positions, then over the keys that the
    position may hold in training. `random` is [n, training_words(task)].
    """
    training, _ = key_cells(task)
    seen = np.array(tables(task).seen, dtype=np.int64)
    if pair is None:
        pair = seen[below(len(seen), random[:, 0])]
    position = below(task.n_positions, random[:, 1])
    cell = training.starts[position] + below(training.counts[position], random[:, 2])
    return stamped(task, pair=pair, key=training.keys[cell], position=position, noise=random[:, 3:])


def training_words(task: AnchorTask) -> int:
    """Return how many random words one training sequence takes."""
    return 3 + noise_words(task)


def targets_of(task: AnchorTask, sequences: Sequences) -> Integers:
    """Return the designated answers."""
    return tables(task).targets[sequences.pair, sequences.key - task.key_low]


def training_batches(
    task: AnchorTask, *, pool_seed: int, order_seed: int, first_step: int, n_steps: int, batch: int
) -> tuple[Integers, Integers]:
    """Return tokens [n_steps, batch, length] and targets [n_steps, batch] of these steps."""
    if first_step < 0 or n_steps < 1 or batch < 1:
        raise InputError(
            f"steps from {first_step}, {n_steps} of them, batch {batch}: expected a first step of "
            "at least 0, at least one step and one sequence"
        )
    if task.pool is not None:
        return _pool_batches(task, task.pool, pool_seed, order_seed, first_step, n_steps, batch)
    width = training_words(task)
    tokens = np.empty((n_steps, batch, task.length), dtype=np.int64)
    targets = np.empty((n_steps, batch), dtype=np.int64)
    # Steps at a time: enough to make NumPy's own cost small, few enough to stay in the cache.
    together = max(1, 8_192 // batch)
    for start in range(0, n_steps, together):
        stop = min(start + together, n_steps)
        random = np.empty((stop - start, batch * width), dtype=np.uint32)
        for index in range(stop - start):
            random[index] = words(
                "stream",
                seeds=(pool_seed, order_seed),
                block=first_step + start + index,
                n=batch * width,
            )
        sequences = training_sequences(task, random.reshape(-1, width))
        tokens[start:stop] = sequences.tokens.reshape(stop - start, batch, -1)
        targets[start:stop] = targets_of(task, sequences).reshape(stop - start, batch)
    return tokens, targets


@lru_cache(maxsize=16)
def pool(task: AnchorTask, seed: int) -> tuple[Sequences, NDArray[Any]]:
    """Return the training pool and its targets, drawn once, in the smallest integer types.

    Sequence i has seen pair i mod their number, so that the pairs differ by one sequence at most
    (the papers draw the same number for each). A pure function that remembers a few pools, since
    training asks for the same one many times.
    """
    size = task.pool or 0
    width = training_words(task)
    seen = np.array(tables(task).seen, dtype=np.int64)
    token = np.min_scalar_type(task.vocabulary - 1)
    tokens = np.empty((size, task.length), dtype=token)
    targets, key = np.empty(size, dtype=token), np.empty(size, dtype=token)
    pair, position = np.empty(size, dtype=np.uint16), np.empty(size, dtype=np.uint16)
    for start in range(0, size, _BLOCK):
        stop = min(start + _BLOCK, size)
        n = stop - start
        random = words("pool", seeds=(seed,), block=start // _BLOCK, n=n * width)
        rows = seen[np.arange(start, stop) % len(seen)]
        part = training_sequences(task, random.reshape(n, width), rows)
        tokens[start:stop], targets[start:stop] = part.tokens, targets_of(task, part)
        pair[start:stop], key[start:stop], position[start:stop] = rows, part.key, part.position
    for array in (tokens, targets, pair, key, position):
        array.flags.writeable = False
    return Sequences(tokens=tokens, pair=pair, key=key, position=position), targets


@lru_cache(maxsize=16)
def _epoch_order(size: int, order_seed: int, epoch: int) -> NDArray[np.int32]:
    random = words("epoch", seeds=(order_seed, epoch), block=0, n=2 * size).view(np.uint64)
    return np.argsort(random, kind="stable").astype(np.int32)


def _pool_batches(
    task: AnchorTask,
    size: int,
    pool_seed: int,
    order_seed: int,
    first_step: int,
    n_steps: int,
    batch: int,
) -> tuple[Integers, Integers]:
    steps_per_epoch = size // batch
    if not steps_per_epoch:
        raise InputError(
            f"a pool of {size} sequences holds no batch of {batch}: expected pool >= batch"
        )
    sequences, targets = pool(task, pool_seed)
    chosen = np.empty((n_steps, batch), dtype=np.int64)
    step, last_step = first_step, first_step + n_steps
    while step < last_step:
        epoch, index = divmod(step, steps_per_epoch)
        n = min(steps_per_epoch - index, last_step - step)
        order = _epoch_order(size, order_seed, epoch)[index * batch : (index + n) * batch]
        chosen[step - first_step : step - first_step + n] = order.reshape(n, batch)
        step += n
    return sequences.tokens[chosen].astype(np.int64), targets[chosen].astype(np.int64)

"""Random numbers that any window of a tensor can be asked for: no order, no state.

A flat tensor is cut into blocks of 65,536 values. The bits of a block come from the Philox
counter generator, keyed by a hash of (seed, name, block), so that a value depends on its place
alone: neither on the order of the draws, nor on threads, nor on which part is asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from initrate.errors import InputError
from initrate.rule._checks import whole_number

BLOCK = 65_536
_CHUNK = 8_192
# Inside a block, whole chunks are made: a small tensor does not pay for a block, and every
# value is the outcome of the same array operation in whichever window it is asked for.
_WORDS_A_COUNTER = 4
_ANGLE = np.uint64(2**24 - 1)
_STREAM = "initrate-draw-2"


def unit_normal(seed: int, name: str, size: int, *, start: int = 0) -> NDArray[np.float32]:
    """Return `size` standard normal values of the stream (seed, name), from place `start` on.

    >>> whole = unit_normal(0, "blocks.0.mlp.in.weight", 100)
    >>> window = unit_normal(0, "blocks.0.mlp.in.weight", 10, start=90)
    >>> bool((window == whole[90:]).all())
    True
    """
    return _window(_normal_chunk, 2, seed, name, size, start)


def unit_uniform(seed: int, name: str, size: int, *, start: int = 0) -> NDArray[np.float32]:
    """Return `size` values uniform on [-1, 1] of the stream (seed, name), from `start` on.

    >>> float(abs(unit_uniform(0, "bias", 1000)).max()) <= 1.0
    True
    """
    return _window(_uniform_chunk, 1, seed, name, size, start)


def _window(
    chunk_of: Callable[[NDArray[np.uint64]], NDArray[np.float32]],
    values_a_word: int,
    seed: int,
    name: str,
    size: int,
    start: int,
) -> NDArray[np.float32]:
    if isinstance(seed, bool):
        raise InputError(f"seed is {seed!r}: expected a whole number of at least 0")
    seed = whole_number("seed", seed, least=0)
    size = whole_number("size of a draw", size, least=0)
    start = whole_number("start of a draw", start, least=0)
    out = np.empty(size, dtype=np.float32)
    first_chunk, end = start // _CHUNK, start + size
    for chunk in range(first_chunk, -(-end // _CHUNK)) if size else ():
        values = chunk_of(_chunk_bits(seed, name, chunk, _CHUNK // values_a_word))
        low, high = max(start, chunk * _CHUNK), min(end, (chunk + 1) * _CHUNK)
        out[low - start : high - start] = values[low - chunk * _CHUNK : high - chunk * _CHUNK]
    return out


def _chunk_bits(seed: int, name: str, chunk: int, n_words: int) -> NDArray[np.uint64]:
    """Return the 64-bit words of one chunk."""
    block, inside = divmod(chunk * _CHUNK, BLOCK)
    text = "\0".join((_STREAM, str(seed), name, str(block)))
    key = np.frombuffer(
        hashlib.blake2b(text.encode("utf-8"), digest_size=16).digest(), dtype="<u8"
    ).astype(np.uint64)
    counter = inside // _CHUNK * n_words // _WORDS_A_COUNTER
    return np.random.Philox(key=key, counter=counter).random_raw(n_words)


def _normal_chunk(words: NDArray[np.uint64]) -> NDArray[np.float32]:
    """Return normal values by the transform of Box and Muller, two for each word.

    The upper 40 bits of a word give the radius, the lower 24 the angle: as many as a float32
    holds, in which sines are fast. The largest radius is sqrt(80 ln 2) = 7.45, which normal
    values exceed once in ten million million.
    """
    places = (words >> np.uint64(24)).astype(np.float64)
    # In (0, 1], so that the logarithm is finite.
    radius = np.sqrt(-2.0 * np.log((places + 1.0) * 2.0**-40)).astype(np.float32)
    # Signed and in the middle of its step, so that no direction is preferred.
    angle = (words & _ANGLE).astype(np.float32)
    angle = (angle - np.float32(2**23 - 0.5)) * np.float32(2.0**-23 * np.pi)
    return np.concatenate((radius * np.cos(angle), radius * np.sin(angle)))


def _uniform_chunk(words: NDArray[np.uint64]) -> NDArray[np.float32]:
    """Return values that lie symmetrically about zero, one for each word."""
    # The upper 53 bits are whole numbers that a float64 holds exactly.
    places = (words >> np.uint64(11)).astype(np.float64)
    return ((places + 0.5) * 2.0**-52 - 1.0).astype(np.float32)

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
_STREAM = "initrate-draw-1"


def unit_normal(seed: int, name: str, size: int, *, start: int = 0) -> NDArray[np.float32]:
    """Return `size` standard normal values of the stream (seed, name), from place `start` on.

    >>> whole = unit_normal(0, "blocks.0.mlp.in.weight", 100)
    >>> window = unit_normal(0, "blocks.0.mlp.in.weight", 10, start=90)
    >>> bool((window == whole[90:]).all())
    True
    """
    return _window(_normal_chunk, seed, name, size, start)


def unit_uniform(seed: int, name: str, size: int, *, start: int = 0) -> NDArray[np.float32]:
    """Return `size` values uniform on [-1, 1] of the stream (seed, name), from `start` on.

    >>> float(abs(unit_uniform(0, "bias", 1000)).max()) <= 1.0
    True
    """
    return _window(_uniform_chunk, seed, name, size, start)


def _window(
    chunk_of: Callable[[NDArray[np.uint64]], NDArray[np.float64]],
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
        values = chunk_of(_chunk_bits(seed, name, chunk))
        low, high = max(start, chunk * _CHUNK), min(end, (chunk + 1) * _CHUNK)
        # The one rounding to float32 is the assignment.
        out[low - start : high - start] = values[low - chunk * _CHUNK : high - chunk * _CHUNK]
    return out


def _chunk_bits(seed: int, name: str, chunk: int) -> NDArray[np.uint64]:
    """Return the 64-bit words of one chunk, one for each of its values."""
    block, inside = divmod(chunk * _CHUNK, BLOCK)
    text = "\0".join((_STREAM, str(seed), name, str(block)))
    key = np.frombuffer(
        hashlib.blake2b(text.encode("utf-8"), digest_size=16).digest(), dtype="<u8"
    ).astype(np.uint64)
    return np.random.Philox(key=key, counter=inside // _WORDS_A_COUNTER).random_raw(_CHUNK)


def _normal_chunk(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return normal values by the transform of Box and Muller, one for each word."""
    places = _places(words)
    half = _CHUNK // 2
    # In (0, 1], so that the logarithm is finite; the largest radius is sqrt(106 ln 2) = 8.6.
    radius = np.sqrt(-2.0 * np.log((places[:half] + 1.0) * 2.0**-53))
    angle = places[half:] * (2.0**-52 * np.pi)
    return np.concatenate((radius * np.cos(angle), radius * np.sin(angle)))


def _uniform_chunk(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return values that lie symmetrically about zero, one for each word."""
    return (_places(words) + 0.5) * 2.0**-52 - 1.0


def _places(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return the upper 53 bits of each word: whole numbers that a float holds exactly."""
    return (words >> np.uint64(11)).astype(np.float64)

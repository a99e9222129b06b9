"""Random numbers that any window of a tensor can be asked for: no order, no state.

A flat tensor is cut into blocks of 65,536 values. The bits of a block come from the Philox
counter generator, keyed by a hash of (seed, name, block), so that a value depends on its place
alone: neither on the order of the draws, nor on threads, nor on which part is asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

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
    return _window(_fill_normal, 2, seed, name, size, start)


def unit_uniform(seed: int, name: str, size: int, *, start: int = 0) -> NDArray[np.float32]:
    """Return `size` values uniform on [-1, 1] of the stream (seed, name), from `start` on.

    >>> float(abs(unit_uniform(0, "bias", 1000)).max()) <= 1.0
    True
    """
    return _window(_fill_uniform, 1, seed, name, size, start)


def _window(
    fill: Callable[[NDArray[np.uint64], NDArray[np.float32]], None],
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
    if not size:
        return out
    first, end = start // _CHUNK, start + size
    words = _chunks_of_words(seed, name, first, -(-end // _CHUNK), _CHUNK // values_a_word)
    for chunk, bits in enumerate(words, first):
        low, high = max(start, chunk * _CHUNK), min(end, (chunk + 1) * _CHUNK)
        place = out[low - start : high - start]
        if high - low == _CHUNK:
            fill(bits, place)
        else:
            whole = np.empty(_CHUNK, dtype=np.float32)
            fill(bits, whole)
            place[...] = whole[low - chunk * _CHUNK : high - chunk * _CHUNK]
    return out


def _chunks_of_words(
    seed: int, name: str, first: int, end: int, n_words: int
) -> Iterator[NDArray[np.uint64]]:
    """Yield the 64-bit words of the chunks from `first` to before `end`."""
    generator = None
    for chunk in range(first, end):
        block, inside = divmod(chunk * _CHUNK, BLOCK)
        # Inside of a block the words of a chunk follow on those of the one before.
        if generator is None or inside == 0:
            text = "\0".join((_STREAM, str(seed), name, str(block)))
            key = np.frombuffer(
                hashlib.blake2b(text.encode("utf-8"), digest_size=16).digest(), dtype="<u8"
            ).astype(np.uint64)
            counter = inside // _CHUNK * n_words // _WORDS_A_COUNTER
            generator = np.random.Philox(key=key, counter=counter)
        yield generator.random_raw(n_words)


def _fill_normal(words: NDArray[np.uint64], out: NDArray[np.float32]) -> None:
    """Write normal values by the transform of Box and Muller, two for each word.

    The upper 40 bits of a word give the radius, the lower 24 the angle: as many as a float32
    holds, in which sines are fast. The largest radius is sqrt(80 ln 2) = 7.45, which normal
    values exceed once in ten million million.
    """
    # Signed numbers, and all steps in place: both are faster, and give the same bits.
    radius = (words >> np.uint64(24)).view(np.int64).astype(np.float64)
    # In (0, 1], so that the logarithm is finite.
    radius += 1.0
    radius *= 2.0**-40
    np.log(radius, out=radius)
    radius *= -2.0
    np.sqrt(radius, out=radius)
    radius = radius.astype(np.float32)
    # Signed and in the middle of its step, so that no direction is preferred.
    angle = (words & _ANGLE).astype(np.int32).astype(np.float32)
    angle -= np.float32(2**23 - 0.5)
    angle *= np.float32(2.0**-23 * np.pi)
    first, second = out[: len(words)], out[len(words) :]
    np.cos(angle, out=first)
    np.sin(angle, out=second)
    first *= radius
    second *= radius


def _fill_uniform(words: NDArray[np.uint64], out: NDArray[np.float32]) -> None:
    """Write values that lie symmetrically about zero, one for each word."""
    # The upper 53 bits are whole numbers that a float64 holds exactly.
    places = (words >> np.uint64(11)).astype(np.float64)
    places += 0.5
    places *= 2.0**-52
    places -= 1.0
    out[...] = places

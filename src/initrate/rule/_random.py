"""Random numbers that any window of a tensor can be asked for: no order, no state.

A flat tensor is cut into blocks of 65,536 values. The bits of a block come from the Philox
counter generator, keyed by a hash of (seed, name, block), so that a value depends on its place
alone: neither on the order of the draws, nor on threads, nor on which part is asked for.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from initrate.errors import InputError
from initrate.rule._checks import whole_number

BLOCK = 65_536
_CHUNK = 8_192
# Inside a block, whole chunks are made: a small tensor does not pay for a block, and every
# value is the outcome of the same array operation in whichever window it is asked for.
_CHUNKS_AT_ONCE = 4
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
    end, n_words = start + size, _CHUNK // values_a_word
    for low, chunks, generator in _runs(seed, name, start, end, n_words):
        high = low + chunks * _CHUNK
        words = generator.random_raw(chunks * n_words).reshape(chunks, n_words)
        if start <= low and high <= end:
            fill(words, out[low - start : high - start])
            continue
        whole = np.empty(high - low, dtype=np.float32)
        fill(words, whole)
        first, last = max(start, low), min(end, high)
        out[first - start : last - start] = whole[first - low : last - low]
    return out


def _runs(
    seed: int, name: str, start: int, end: int, n_words: int
) -> Iterator[tuple[int, int, np.random.Philox]]:
    """Yield runs of whole chunks: their first place, how many they are, and where words come from.

    A run stays within a block. Several chunks at once are faster, above all on several threads,
    which hand over to each other between operations.
    """
    low, generator = start // _CHUNK * _CHUNK, None
    while low < end:
        block, inside = divmod(low, BLOCK)
        # Inside of a block the words of a chunk follow on those of the one before.
        if generator is None or inside == 0:
            text = "\0".join((_STREAM, str(seed), name, str(block)))
            key = np.frombuffer(
                hashlib.blake2b(text.encode("utf-8"), digest_size=16).digest(), dtype="<u8"
            ).astype(np.uint64)
            generator = _philox(key, inside // _CHUNK * n_words // _WORDS_A_COUNTER)
        chunks = min(_CHUNKS_AT_ONCE, (BLOCK - inside) // _CHUNK, -(-(end - low) // _CHUNK))
        yield low, chunks, generator
        low += chunks * _CHUNK


def _philox(key: NDArray[np.uint64], counter: int) -> np.random.Philox:
    """Return the thread's generator, set to this key and counter.

    NumPy asks the system for entropy whenever it makes a generator, also where a key is given: one
    that is set anew takes a tenth of the time. Nothing of what it was before is left in it.
    """
    generator = getattr(_MADE, "generator", None)
    if generator is None:
        generator = _MADE.generator = np.random.Philox(key=key)
    generator.state = {
        "bit_generator": "Philox",
        "state": {"counter": np.array([counter, 0, 0, 0], dtype=np.uint64), "key": key},
        "buffer": np.zeros(_WORDS_A_COUNTER, dtype=np.uint64),
        "buffer_pos": _WORDS_A_COUNTER,
        "has_uint32": 0,
        "uinteger": 0,
    }
    return generator


_MADE = threading.local()


def _fill_normal(words: NDArray[np.uint64], out: NDArray[np.float32]) -> None:
    """Write normal values by the transform of Box and Muller, two for each word.

    The upper 40 bits of a word give the radius, the lower 24 the angle: as many as a float32
    holds, in which sines are fast. The largest radius is sqrt(80 ln 2) = 7.45, which normal
    values exceed once in ten million million.
    """
    pairs = out.reshape(len(words), 2, -1)
    # Signed and in the middle of its step, so that no direction is preferred.
    angle = (words & _ANGLE).astype(np.int32).astype(np.float32)
    angle -= np.float32(2**23 - 0.5)
    angle *= np.float32(2.0**-23 * np.pi)
    np.cos(angle, out=pairs[:, 0])
    np.sin(angle, out=pairs[:, 1])
    del angle
    # Signed numbers, and all steps in place: both are faster, and give the same bits.
    words >>= np.uint64(24)
    radius = words.view(np.int64).astype(np.float64)
    # In (0, 1], so that the logarithm is finite.
    radius += 1.0
    radius *= 2.0**-40
    np.log(radius, out=radius)
    radius *= -2.0
    np.sqrt(radius, out=radius)
    pairs *= radius.astype(np.float32)[:, None]


def _fill_uniform(words: NDArray[np.uint64], out: NDArray[np.float32]) -> None:
    """Write values that lie symmetrically about zero, one for each word."""
    # The upper 53 bits are whole numbers that a float64 holds exactly.
    places = (words >> np.uint64(11)).astype(np.float64).reshape(-1)
    places += 0.5
    places *= 2.0**-52
    places -= 1.0
    out[...] = places

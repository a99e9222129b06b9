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
_WORDS_A_COUNTER = 4
_ANY_WORD = 2**64 - 1
_HALF = np.float32(2.0**-31)
_HALF_TURN = np.float32(2.0**-31 * np.pi)
_STREAM = "initrate-draw-3"


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
    fill: Callable[[NDArray[np.uint64]], NDArray[np.float32]],
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
    end, n_words = start + size, _CHUNK // values_a_word
    parts: list[NDArray[np.float32]] = []
    for low, chunks, generator in _runs(seed, name, start, end, n_words):
        values = fill(_words(generator, chunks * n_words).reshape(chunks, n_words)).reshape(-1)
        parts.append(values[max(start - low, 0) : end - low])
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([np.empty(0, dtype=np.float32), *parts])


def _runs(
    seed: int, name: str, start: int, end: int, n_words: int
) -> Iterator[tuple[int, int, np.random.Generator]]:
    """Yield runs of whole chunks: their first place, how many they are, and where words come from.

    A run ends where its block does. All its chunks at once are faster than one by one, above all on
    several threads, which hand over to each other between operations.
    """
    low = start // _CHUNK * _CHUNK
    while low < end:
        block, inside = divmod(low, BLOCK)
        text = "\0".join((_STREAM, str(seed), name, str(block)))
        key = np.frombuffer(
            hashlib.blake2b(text.encode("utf-8"), digest_size=16).digest(), dtype="<u8"
        ).astype(np.uint64)
        chunks = min((BLOCK - inside) // _CHUNK, -(-(end - low) // _CHUNK))
        yield low, chunks, _philox(key, inside // _CHUNK * n_words // _WORDS_A_COUNTER)
        low += chunks * _CHUNK


def _words(generator: np.random.Generator, size: int) -> NDArray[np.uint64]:
    """Return the next raw words, as `random_raw` gives them: but that holds up other threads."""
    return generator.integers(0, _ANY_WORD, size=size, dtype=np.uint64, endpoint=True)


def _philox(key: NDArray[np.uint64], counter: int) -> np.random.Generator:
    """Return the thread's generator, set to this key and counter.

    NumPy asks the system for entropy whenever it makes a generator, also where a key is given: one
    that is set anew takes a tenth of the time. Nothing of what it was before is left in it.
    """
    generator = getattr(_MADE, "generator", None)
    if generator is None:
        generator = _MADE.generator = np.random.Generator(np.random.Philox(key=key))
    generator.bit_generator.state = {
        "bit_generator": "Philox",
        "state": {"counter": np.array([counter, 0, 0, 0], dtype=np.uint64), "key": key},
        "buffer": np.zeros(_WORDS_A_COUNTER, dtype=np.uint64),
        "buffer_pos": _WORDS_A_COUNTER,
        "has_uint32": 0,
        "uinteger": 0,
    }
    return generator


_MADE = threading.local()


def _fill_normal(words: NDArray[np.uint64]) -> NDArray[np.float32]:
    """Return normal values by the transform of Box and Muller, two for each word and in its place.

    Half of the bits give the angle, half the radius, in float32 throughout: that is what weights
    are kept in, and in which sines and logarithms are fast. The largest radius is sqrt(64 ln 2) =
    6.66, which normal values exceed once in thirty thousand million.
    """
    first, second = words.view(np.int32).reshape(len(words), 2, -1).transpose(1, 0, 2)
    values = words.view(np.float32)
    cosine, sine = values.reshape(len(words), 2, -1).transpose(1, 0, 2)
    # Signed halves, in [-1, 1) when divided; few operations, and nearly all in place.
    radius = np.multiply(second, _HALF, dtype=np.float32, casting="unsafe")
    np.square(radius, out=radius)
    # In (0, 1], so that the logarithm is finite.
    np.maximum(radius, _HALF * _HALF, out=radius)
    np.log(radius, out=radius)
    np.negative(radius, out=radius)
    np.sqrt(radius, out=radius)
    angle = np.multiply(first, _HALF_TURN, out=sine, dtype=np.float32, casting="unsafe")
    np.cos(angle, out=cosine)
    np.sin(angle, out=sine)
    cosine *= radius
    sine *= radius
    return values


def _fill_uniform(words: NDArray[np.uint64]) -> NDArray[np.float32]:
    """Return values that lie symmetrically about zero, one for each word."""
    # The upper 53 bits are whole numbers that a float64 holds exactly.
    places = (words >> np.uint64(11)).astype(np.float64)
    places += 0.5
    places *= 2.0**-52
    places -= 1.0
    return places.astype(np.float32)

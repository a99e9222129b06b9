"""The random numbers: their distribution, their windows, and the stream itself."""

from __future__ import annotations

import hashlib
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from initrate.errors import InputError
from initrate.rule import BLOCK, unit_normal, unit_uniform

N = 300_000


def kolmogorov_distance(values: np.ndarray, share_below: np.ndarray) -> float:
    """The largest gap between the sample's distribution and the one meant, at sorted values."""
    steps = np.arange(len(values) + 1) / len(values)
    return float(max((steps[1:] - share_below).max(), (share_below - steps[:-1]).max()))


@pytest.mark.parametrize("seed", [0, 1, 2**63, 10**30])
def test_normal_values_are_standard_normal(seed: int) -> None:
    values = np.sort(unit_normal(seed, "w", N).astype(np.float64))
    # Five standard errors of each estimator.
    assert abs(values.mean()) < 5 / math.sqrt(N)
    assert abs(values.var() - 1) < 5 * math.sqrt(2 / N)
    assert abs((values**3).mean()) < 5 * math.sqrt(15 / N)
    assert abs((values**4).mean() - 3) < 5 * math.sqrt(96 / N)
    cdf = NormalDist().cdf
    share_below = np.array([cdf(x) for x in values[::10]])
    # A gap of 1.95 / sqrt(n) has a probability of one in a thousand.
    assert kolmogorov_distance(values[::10], share_below) < 1.95 / math.sqrt(N) + 10 / N


def test_normal_values_are_not_truncated() -> None:
    values = np.abs(unit_normal(0, "w", N))
    for z in (2.0, 3.0, 4.0):
        share = 2 * NormalDist().cdf(-z)
        assert abs((values > z).sum() - N * share) < 5 * math.sqrt(N * share)
    assert (values > 4.0).any()


@pytest.mark.parametrize("seed", [0, 5])
def test_uniform_values_are_uniform(seed: int) -> None:
    values = np.sort(unit_uniform(seed, "b", N).astype(np.float64))
    assert -1 <= values[0] < -1 + 50 / N and 1 - 50 / N < values[-1] <= 1
    assert abs(values.mean()) < 5 * math.sqrt(1 / 3 / N)
    assert abs(values.var() - 1 / 3) < 5 * math.sqrt((1 / 5 - 1 / 9) / N)
    assert kolmogorov_distance(values, (values + 1) / 2) < 1.95 / math.sqrt(N)


@settings(max_examples=60, deadline=None)
@given(
    start=st.integers(0, 2 * BLOCK + 100),
    size=st.integers(0, 20_000),
    make=st.sampled_from([unit_normal, unit_uniform]),
)
def test_a_window_equals_that_part_of_the_whole(start: int, size: int, make) -> None:
    whole = make(7, "blocks.1.mlp.out.weight", 3 * BLOCK)
    window = make(7, "blocks.1.mlp.out.weight", size, start=start)
    assert window.dtype == np.float32
    assert window.tobytes() == whole[start : start + size].tobytes()


@pytest.mark.parametrize("start", [BLOCK - 1, BLOCK, 8191, 8192, 0])
def test_windows_across_borders(start: int) -> None:
    whole = unit_normal(7, "w", 2 * BLOCK)
    assert np.array_equal(unit_normal(7, "w", 2, start=start), whole[start : start + 2])


def test_neighbours_blocks_seeds_names_and_halves_are_independent() -> None:
    n = 2 * BLOCK
    base = unit_normal(0, "w", n).astype(np.float64)
    others = {
        "seed": unit_normal(1, "w", n),
        "name": unit_normal(0, "v", n),
        "next value": np.roll(base, 1),
        "next block": np.roll(base, BLOCK),
        "next chunk": np.roll(base, 8192),
        "pair of the transform": np.roll(base, 4096),
    }
    for what, other in others.items():
        assert abs((base * other).mean()) < 5 / math.sqrt(n), what
        assert abs(((base**2 - 1) * (other.astype(np.float64) ** 2 - 1)).mean()) < 10 / math.sqrt(
            n
        ), what


def test_seed_and_name_cannot_be_mistaken_for_each_other() -> None:
    assert not np.array_equal(unit_normal(1, "1w", 10), unit_normal(11, "w", 10))


def test_the_same_seed_gives_the_same_values() -> None:
    assert unit_normal(3, "w", 1000).tobytes() == unit_normal(3, "w", 1000).tobytes()
    assert np.array_equal(unit_normal(3, "w", 10), unit_normal(np.int64(3), "w", 10))  # pyright: ignore[reportArgumentType]


# Philox 4x64 with ten rounds, in whole numbers, from the paper (Salmon et al. 2011).
MASK = 2**64 - 1


def philox(counter: int, key: tuple[int, int]) -> list[int]:
    words = [(counter >> (64 * i)) & MASK for i in range(4)]
    low_key, high_key = key
    for _ in range(10):
        first, second = 0xD2E7470EE14C6C93 * words[0], 0xCA5A826395121157 * words[2]
        words = [
            (second >> 64) ^ words[1] ^ low_key,
            second & MASK,
            (first >> 64) ^ words[3] ^ high_key,
            first & MASK,
        ]
        low_key = (low_key + 0x9E3779B97F4A7C15) & MASK
        high_key = (high_key + 0xBB67AE8584CAA73B) & MASK
    return words


def word(seed: int, name: str, block: int, index: int) -> int:
    """The word of this index in the stream of a block."""
    text = f"initrate-draw-3\0{seed}\0{name}\0{block}".encode()
    digest = hashlib.blake2b(text, digest_size=16).digest()
    key = (int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little"))
    # NumPy counts up before it makes the first four words.
    return philox(index // 4 + 1, key)[index % 4]


def half(seed: int, name: str, block: int, first: int, index: int) -> float:
    """The signed half of a word, the lower one first, over the largest there is."""
    bits = word(seed, name, block, first + index // 2) >> (32 * (index % 2)) & (2**32 - 1)
    return (bits - 2**32 if bits >= 2**31 else bits) / 2**31


@pytest.mark.parametrize("place", [0, 1, 4095, 4096, 8191, 8192, 65_535, 65_536, 100_001])
def test_the_stream_derived_again_in_plain_python(place: int) -> None:
    block, in_block = divmod(place, 65_536)
    chunk, inside = divmod(in_block, 8192)
    angle, distance = (
        half(4, "w", block, chunk * 4096, inside % 4096 + first) for first in (0, 4096)
    )
    radius = math.sqrt(-2 * math.log(abs(distance)))
    normal = radius * (math.cos if inside < 4096 else math.sin)(math.pi * angle)
    # The sine is a float32's: a few units in the last place of a number of the radius's size.
    found = float(unit_normal(4, "w", 1, start=place)[0])
    assert found == pytest.approx(normal, abs=radius * 2e-7)
    uniform = ((word(4, "w", block, in_block) >> 11) + 0.5) / 2**52 - 1
    assert float(unit_uniform(4, "w", 1, start=place)[0]) == pytest.approx(uniform, rel=1.2e-7)


@pytest.mark.parametrize("make", [unit_normal, unit_uniform])
@pytest.mark.parametrize(
    ("seed", "size", "start", "message"),
    [
        (-1, 1, 0, "seed is -1: expected a whole number of at least 0"),
        (1.0, 1, 0, "seed is 1.0: expected a whole number"),
        (True, 1, 0, "seed is True: expected a whole number"),
        (0, -1, 0, "size of a draw is -1"),
        (0, 1, -1, "start of a draw is -1"),
    ],
)
def test_bad_input(make, seed: object, size: int, start: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(seed, "w", size, start=start)

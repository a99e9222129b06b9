"""Operations: by hand, and against what torch itself counts."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from initrate.bench import SIZES, PlainDecoder, Problem, Size, operations
from initrate.model import ModelConfig, logits
from tests.bench.small import small


def test_by_hand() -> None:
    """One head of 3 and 5, d 4, d_ff 6, two layers, 3 tokens of 7, 14 sequences or 13.

    At one position: projections 4 (3 + 3 + 5) = 44, products 3 (3 + 5) = 24, output 5 * 4 = 20,
    feed-forward 2 * 4 * 6 = 48, together 136; unembedding 4 * 7 = 28. A sequence, the plain way:
    3 (2 * 136 + 28) = 900.

    What remains: the first layer 3 * 136 = 408; in the last layer the query 4 * 3 and its way
    through W_K 3 * 4, scores and mean 2 * 3 * 4, W_V 4 * 5, output 20, feed-forward 48: 136;
    unembedding 28. Together 572. With 14 sequences, twice the vocabulary, the first projections
    (3 * 44 = 132) are half of that: 506.
    """
    model = ModelConfig(n_layers=2, d_model=4, n_heads=1, d_k=3, d_v=5, d_ff=6)
    size = Size(model, n_models=1, batch=14, vocabulary=7, length=3)
    assert operations(size).plain == 6 * 14 * 900
    assert operations(size).remaining == 6 * 14 * 506
    assert operations(size).ceiling == 900 / 506
    assert operations(replace(size, batch=13)).remaining == 6 * 13 * 572
    every = replace(size, loss="all")
    assert operations(every).plain == 6 * 14 * 900
    assert operations(every).remaining == 6 * 14 * (900 - 66)


ROWS = [
    *((name, {}) for name in SIZES),
    ("laptop", {"batch": 25}),
    ("laptop", {"loss": "all"}),
    ("d128", {"model": {"n_layers": 1}}),
    ("d128", {"model": {"activation": "swiglu", "positions": "rotary", "n_heads": 2}}),
]


@pytest.mark.parametrize(("name", "changes"), ROWS, ids=range(len(ROWS)))
def test_as_torch_counts(name: str, changes: dict[str, object]) -> None:
    """The forward pass of the plain decoder to the digit.

    Beside what is counted, the engine multiplies only single rows (the bias of a norm by the
    weights behind it): one in 32 sequences of 7, per cent of a small model.
    """
    changes = dict(changes)
    model = cast("dict[str, object]", changes.pop("model", {}))
    size = replace(small(name), **changes)  # pyright: ignore[reportArgumentType]
    size = replace(size, model=replace(size.model, **model))  # pyright: ignore[reportArgumentType]
    problem = Problem(size, steps=1, threads=1)
    weights, (tokens, _) = problem.weights(), problem.batch(0)
    stacked = {name: torch.from_numpy(array) for name, array in weights.items()}
    plain = PlainDecoder(size.model, size.vocabulary)
    expected = operations(size)
    assert counted(lambda: plain(torch.from_numpy(tokens[0]))) == expected.plain / 3
    positions = "last" if size.loss == "last" else "all"
    found = counted(
        lambda: logits(size.model, stacked, torch.from_numpy(tokens), positions=positions)
    )
    assert found / size.n_models == pytest.approx(expected.remaining / 3, rel=0.02)


def counted(work) -> int:
    """Return the operations of the matrix products in a function, as torch counts them."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


def test_ceilings_of_the_sizes() -> None:
    ceilings = {name: operations(size).ceiling for name, size in SIZES.items()}
    assert ceilings["sequences"] == 1.0
    assert ceilings["paper-2"] > ceilings["paper-4"] > ceilings["paper-7"] > 1.1
    assert np.isclose(ceilings["laptop"], 526464 / 232640)

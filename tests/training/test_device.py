"""Types of numbers: bfloat16 products, TF32 by option, and what a device has not."""

from __future__ import annotations

import pytest
import torch

from initrate.errors import InputError
from initrate.training import Execution, train
from initrate.training._device import precision
from tests.training.test_equality import ROWS, bucket_of, losses


@pytest.mark.parametrize("row", ROWS[:4], ids=range(4))
def test_bfloat16_takes_products_alone(row: dict[str, object]) -> None:
    """Products of eight bits move a loss by about 1 %; weights and losses stay float32."""
    bucket = bucket_of(row)
    short = train(bucket, Execution(threads=1, dtype="bfloat16"))
    full = train(bucket, Execution(threads=1))
    assert all(array.dtype == "float32" for array in short.weights.values())
    for one, other in zip(short.lanes, full.lanes, strict=True):
        assert losses(one.curve) != losses(other.curve)
        assert losses(one.curve) == pytest.approx(losses(other.curve), rel=0.03)


def test_bfloat16_again_gives_equal_bits() -> None:
    bucket = bucket_of(ROWS[0])
    runs = [train(bucket, Execution(threads=1, dtype="bfloat16")) for _ in range(2)]
    assert losses(runs[0].lanes[0].curve) == losses(runs[1].lanes[0].curve)


def test_tf32_holds_while_a_bucket_runs() -> None:
    assert not torch.backends.cuda.matmul.allow_tf32
    with precision(Execution(tf32=True)):
        assert torch.backends.cuda.matmul.allow_tf32
    assert not torch.backends.cuda.matmul.allow_tf32


def test_what_is_not_there_is_refused() -> None:
    for execution, words in (
        (Execution(device="nowhere"), "is not to be had here"),
        (Execution(dtype="float8"), "unknown dtype 'float8'"),  # pyright: ignore[reportArgumentType]
    ):
        with pytest.raises(InputError, match=words):
            train(bucket_of(ROWS[0]), execution)

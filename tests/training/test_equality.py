"""The engine against the plain way: the same losses for 20 steps, whatever the options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

import numpy as np
import pytest
import torch

from initrate.bench import PlainDecoder, plain_learning_rate
from initrate.model import ModelConfig, initialize, logits
from initrate.rule import Rule
from initrate.training import Bucket, Execution, Lane, Seeds, Training, train, window
from tests.training.pairwise import all_pairs, pairs_of, pairwise
from tests.training.plain_run import plain_run
from tests.training.random_task import RandomTask

STEPS = 20
MODEL_OPTIONS: dict[str, tuple[object, ...]] = {
    "norm_position": ("pre", "post"),
    "norm": ("layernorm", "rmsnorm"),
    "activation": ("relu", "gelu", "gelu_tanh", "swiglu"),
    "positions": ("learned", "rotary", "none"),
    "tied": (False, True),
    "biases": ("none", "unembedding", "blocks", "all"),
    "n_layers": (1, 2),
    "n_heads": (1, 3),
    "d_v": (4, 6),
    "norm_eps": (1e-5, 1e-2),
}
SHARED_OPTIONS: dict[str, tuple[object, ...]] = {
    "optimizer": ("adamw", "sgd"),
    "schedule": ("cosine", "linear", "constant"),
    "decay": ("all", "matrices", "not_embeddings"),
    "decay_mode": ("coupled", "independent"),
    "loss_positions": ("last", "all", (0, 3, 5)),
    # A batch of more than twice the vocabulary: the engine may look the first layer up.
    "batch": (5, 30),
}
LANE_OPTIONS: dict[str, tuple[object, ...]] = {
    "weight_decay": (0.0, 0.3),
    "decay_schedule": ((), window(5, 12), ((0, 0.5), (8, 2.0))),
    "clip_norm": (None, 0.1, 100.0),
    "warmup_steps": (0, 7, 30),
    "lr_start": (0.0, 1e-4),
    "lr_final": (None, 1e-4),
    "beta1": (0.9, 0.8),
    "beta2": (0.999, 0.95),
    "eps": (1e-8, 1e-3),
    "momentum": (0.9, 0.0),
}
# With one thread both models are one batched program, with two each has a thread.
EXECUTION_OPTIONS: dict[str, tuple[object, ...]] = {"threads": (1, 2)}
OPTIONS = {**MODEL_OPTIONS, **SHARED_OPTIONS, **LANE_OPTIONS, **EXECUTION_OPTIONS}
ROWS = pairwise(OPTIONS)
LEARNING_RATES = (3e-3, 1e-2)
GAMMAS = (0.4, 0.8)


def bucket_of(row: Mapping[str, object]) -> Bucket:
    """Return two lanes: the first has the row's lane options, the second the next ones."""
    model = {name: row[name] for name in MODEL_OPTIONS}
    config = ModelConfig(d_model=12, d_k=4, d_ff=10, max_positions=8, **cast(Any, model))
    shared = {name: row[name] for name in SHARED_OPTIONS}
    positions = shared.pop("loss_positions")
    shared |= (
        {"loss": "chosen", "loss_positions": positions}
        if isinstance(positions, tuple)
        else {"loss": positions}
    )
    lanes = []
    for index, (lr, gamma) in enumerate(zip(LEARNING_RATES, GAMMAS, strict=True)):
        own = {
            name: values[(values.index(row[name]) + index) % len(values)]
            for name, values in LANE_OPTIONS.items()
        }
        training = Training(steps=STEPS, log_every=1, lr=lr, **cast(Any, shared), **cast(Any, own))
        rule = Rule(gamma=gamma, bias="torch")
        seeds = Seeds(init=index, pool=7, order=2 + index, evaluation=1)
        lanes.append(Lane(f"{index:012x}", rule, training, seeds))
    return Bucket(RandomTask(), config, tuple(lanes))


def test_the_rows_cover_all_pairs_of_all_options() -> None:
    covered = set().union(*(pairs_of(row) for row in ROWS))
    assert covered == all_pairs(OPTIONS)
    assert len(ROWS) < 40


def test_every_option_has_a_row() -> None:
    """An option added later has to be added here as well."""
    sizes = {"d_model", "d_k", "d_ff", "max_positions"}
    assert {field.name for field in fields(ModelConfig)} == set(MODEL_OPTIONS) | sizes
    rest = {"steps", "lr", "lr_final_fraction", "loss", "log_every"}
    assert {f.name for f in fields(Training)} == set(SHARED_OPTIONS) | set(LANE_OPTIONS) | rest


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_logits_agree(row: Mapping[str, object]) -> None:
    bucket = bucket_of(row)
    task, lanes = bucket.task, bucket.lanes
    drawn = initialize(
        bucket.model, task.vocabulary, [x.rule for x in lanes], [x.seeds.init for x in lanes]
    )
    tokens = np.random.default_rng(0).integers(
        0, task.vocabulary, (len(lanes), lanes[0].training.batch, task.length)
    )
    stacked = {name: torch.from_numpy(array).double() for name, array in drawn.items()}
    every = logits(bucket.model, stacked, torch.from_numpy(tokens), positions="all")
    last = logits(bucket.model, stacked, torch.from_numpy(tokens), positions="last")
    for index in range(len(lanes)):
        plain = PlainDecoder(bucket.model, task.vocabulary).double()
        plain.load_canonical({name: array[index] for name, array in drawn.items()})
        expected = plain(torch.from_numpy(tokens[index])).detach()
        torch.testing.assert_close(every[index], expected, rtol=1e-9, atol=1e-10)
        torch.testing.assert_close(last[index], expected[:, -1], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_float32_losses_agree(row: Mapping[str, object]) -> None:
    bucket = bucket_of(row)
    result = train(bucket, Execution(threads=cast(int, row["threads"])))
    for index, lane in enumerate(result.lanes):
        expected, _ = plain_run(bucket, index, dtype="float64")
        # A unit at the kink of ReLU, or a gradient below Adam's eps, enlarges roundings. The plain
        # way in float32 tells where: there the engine need not be nearer than that is.
        plain, _ = plain_run(bucket, index)
        rounding = max(abs(p / e - 1) for p, e in zip(plain, expected, strict=True))
        assert rounding < 1e-3
        assert losses(lane.curve) == pytest.approx(expected, rel=max(1e-5, rounding), abs=1e-7)
        training = bucket.lanes[index].training
        rates = [plain_learning_rate(training, step) for step in range(STEPS)]
        assert [row["lr"] for row in lane.curve[1:]] == pytest.approx(rates, rel=1e-6)


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_float64_losses_and_weights_agree(row: Mapping[str, object]) -> None:
    """Sixteen digits leave no room for an option that is read a little differently."""
    bucket = bucket_of(row)
    result = train(bucket, Execution(threads=cast(int, row["threads"]), dtype="float64"))
    for index, lane in enumerate(result.lanes):
        expected, weights = plain_run(bucket, index, dtype="float64")
        assert losses(lane.curve) == pytest.approx(expected, rel=1e-9, abs=1e-11)
        assert set(result.weights) == set(weights)
        for name, array in weights.items():
            np.testing.assert_allclose(
                result.weights[name][index], array, rtol=1e-5, atol=1e-7, err_msg=name
            )


def losses(curve: Any) -> list[float]:
    """Return the loss before each update; row 0 stands before the first."""
    assert [row["step"] for row in curve] == list(range(STEPS + 1))
    return [row["loss"] for row in curve[1:]]

"""The batched engine against the plain way: speed of training steps, in one alternating run.

    make bench ARGS="--sizes laptop paper --seconds 50"

Plain is one `nn.Module` after another, eager, on the same sequences: `benchmarks/plain.py`, whose
forward gives the logits of every position, as a module's does. Beside it stands the same with one
saving of the engine taken over by hand: the unembedding at the last position alone. All
sides clip, all use AdamW with decay on everything, and all get ready-made sequences, so that what
is measured is the step alone. Rounds alternate between them, and a matrix product of 1,024 is
timed before, between and after them: where that peak moves, the machine was not quiet.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import numpy as np
import torch
import tyro

from benchmarks.plain import PlainDecoder, plain_optimizer, plain_step
from initrate.model import ModelConfig, initialize, shape
from initrate.rule import Rule
from initrate.tasks import Score, Split
from initrate.training import Bucket, Execution, Lane, Progress, Seeds, Training, train

GEMM_WIDTH = 1024
LENGTH = 9
ROUNDS_LEAST = 3


@dataclass(frozen=True, slots=True)
class Size:
    """One comparison: a shape, how many models of it, and how large a batch."""

    model: ModelConfig
    n_models: int
    batch: int
    vocabulary: int
    steps: int
    """Measured steps of one round of the engine; as many of each plain model."""
    least: float
    """The speed-up that the project promises."""


SIZES = {
    "laptop": Size(shape("laptop"), 8, 256, 128, steps=20, least=3.0),
    "paper": Size(shape("paper-2405.05409"), 1, 2048, 201, steps=2, least=1.5),
}


@dataclass(frozen=True, eq=False)
class ReadyTask:
    """Sequences drawn beforehand, the same for all models; one of them to evaluate."""

    vocabulary: int
    tokens: np.ndarray
    """[n_steps, batch, length]"""

    @property
    def length(self) -> int:
        """Return the tokens of a sequence."""
        return self.tokens.shape[-1]

    def training_batches(
        self, *, pool_seed: int, order_seed: int, first_step: int, n_steps: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the batches of these steps."""
        part = self.tokens[first_step : first_step + n_steps]
        return part, part[..., 0]

    def evaluation(self, *, seed: int, pool_seed: int, exhaustive: bool) -> tuple[Split, ...]:
        """Return a single sequence."""
        tokens = self.tokens[0, :1]
        return (Split("training", tokens, tokens[:, 0]),)

    def score(self, splits: Sequence[Split], predictions: Sequence[np.ndarray]) -> Score:
        """Return nothing: speed is all that is asked."""
        return Score({"training_accuracy": None}, (), ())


@dataclass(frozen=True, slots=True)
class Row:
    """What came out at one size; times are milliseconds a step of one model."""

    size: str
    n_models: int
    engine_ms: float
    engine_low: float
    engine_high: float
    plain_ms: float
    plain_low: float
    plain_high: float
    speedup: float
    """Median over rounds of plain time by engine time of the same round."""
    speedup_low: float
    speedup_high: float
    last_only_ms: float
    """Plain, with the unembedding at the last position alone."""
    last_only_speedup: float
    rounds: int
    least: float
    peak_gflops: float
    peak_low: float
    peak_high: float
    engine_utilisation: float
    """Plain operations a second by the median peak: over 1 where the engine saves operations."""


def main(
    sizes: tuple[Literal["laptop", "paper"], ...] = ("laptop", "paper"),
    seconds: float = 60.0,
    threads: int | None = None,
    check: bool = False,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> int:
    """Print how many times faster the engine trains than the plain way.

    Args:
        sizes: The sizes to measure.
        seconds: Time to spend on each size, at least three rounds whatever it takes.
        threads: Threads of both sides; the default of torch where not given.
        check: Exit with 1 where a speed-up is below what the project promises.
        as_json: Print one JSON object instead of the table.
    """
    threads = threads or torch.get_num_threads()
    torch.set_num_threads(threads)
    rows = [measure(name, SIZES[name], seconds=seconds, threads=threads) for name in sizes]
    if as_json:
        facts = {"schema": 1, "torch": torch.__version__, "threads": threads}
        print(json.dumps({**facts, "rows": [asdict(row) for row in rows]}, indent=2))
    else:
        print(table(rows, threads))
    return int(check and any(row.speedup < row.least for row in rows))


def measure(name: str, size: Size, *, seconds: float, threads: int) -> Row:
    """Return the row of one size: rounds of peak, engine, peak, plain until the time is up."""
    bucket = bucket_of(size)
    engine_round(bucket, size, threads)
    plain = PlainRuns(bucket)
    for last_only in (False, True):
        plain.round(size.steps, last_only=last_only)
    engine_times, plain_times, last_only_times, peaks = [], [], [], [peak_gflops()]
    start = time.perf_counter()
    while len(engine_times) < ROUNDS_LEAST or time.perf_counter() - start < seconds:
        engine_times.append(engine_round(bucket, size, threads))
        peaks.append(peak_gflops())
        plain_times.append(plain.round(size.steps, last_only=False))
        peaks.append(peak_gflops())
        last_only_times.append(plain.round(size.steps, last_only=True))
        peaks.append(peak_gflops())
        print(
            f"{name} round {len(plain_times)}: engine {1e3 * engine_times[-1]:.2f} ms, "
            f"plain {1e3 * plain_times[-1]:.2f} ms, peak {peaks[-1]:.0f} GFLOP/s",
            file=sys.stderr,
        )
    ratios = [p / e for p, e in zip(plain_times, engine_times, strict=True)]
    engine, peak = statistics.median(engine_times), statistics.median(peaks)
    return Row(
        size=name,
        n_models=size.n_models,
        engine_ms=1e3 * engine,
        engine_low=1e3 * min(engine_times),
        engine_high=1e3 * max(engine_times),
        plain_ms=1e3 * statistics.median(plain_times),
        plain_low=1e3 * min(plain_times),
        plain_high=1e3 * max(plain_times),
        speedup=statistics.median(ratios),
        speedup_low=min(ratios),
        speedup_high=max(ratios),
        last_only_ms=1e3 * statistics.median(last_only_times),
        last_only_speedup=statistics.median(
            p / e for p, e in zip(last_only_times, engine_times, strict=True)
        ),
        rounds=len(ratios),
        least=size.least,
        peak_gflops=peak,
        peak_low=min(peaks),
        peak_high=max(peaks),
        engine_utilisation=operations(size) / engine / 1e9 / peak,
    )


def bucket_of(size: Size) -> Bucket:
    """Return the bucket to train: half of its steps warm up, the other half is measured."""
    training = Training(steps=2 * size.steps, batch=size.batch, log_every=size.steps)
    shape_of_tokens = (training.steps, size.batch, LENGTH)
    tokens = np.random.default_rng(0).integers(0, size.vocabulary, shape_of_tokens)
    lanes = tuple(
        Lane(f"{index:012x}", Rule(gamma=0.5), training, Seeds.all(index))
        for index in range(size.n_models)
    )
    return Bucket(ReadyTask(size.vocabulary, tokens), size.model, lanes)


def engine_round(bucket: Bucket, size: Size, threads: int) -> float:
    """Return the engine's seconds a step of one model, between its last two logged steps."""
    moments: list[tuple[int, float]] = []

    def note(progress: Progress) -> None:
        moments.append((progress.step, time.perf_counter()))

    train(bucket, Execution(threads=threads), on_progress=note)
    (first_step, start), (last_step, end) = moments[-2:]
    return (end - start) / (last_step - first_step) / size.n_models


class PlainRuns:
    """The plain models with their optimizers, warm."""

    def __init__(self, bucket: Bucket) -> None:
        self.runs = []
        for lane in bucket.lanes:
            drawn = initialize(bucket.model, bucket.task.vocabulary, [lane.rule], [lane.seeds.init])
            model = PlainDecoder(bucket.model, bucket.task.vocabulary)
            model.load_canonical({name: array[0] for name, array in drawn.items()})
            data = bucket.task.training_batches(
                pool_seed=lane.seeds.pool,
                order_seed=lane.seeds.order,
                first_step=0,
                n_steps=lane.training.steps,
                batch=lane.training.batch,
            )
            tokens, targets = (torch.from_numpy(np.ascontiguousarray(array)) for array in data)
            optimizer = plain_optimizer(model, lane.training)
            self.runs.append((model, optimizer, lane.training, tokens, targets))

    def round(self, n_steps: int, *, last_only: bool) -> float:
        """Return the seconds a step, one model after another."""
        start = time.perf_counter()
        for model, optimizer, training, tokens, targets in self.runs:
            for step in range(n_steps):
                plain_step(
                    model,
                    optimizer,
                    training=training,
                    step=step,
                    tokens=tokens[step],
                    targets=targets[step],
                    last_only=last_only,
                )
        return (time.perf_counter() - start) / n_steps / len(self.runs)


def peak_gflops(seconds: float = 0.2) -> float:
    """Return 1e9 operations a second of a float32 matrix product, the best of a short while."""
    a = torch.ones(GEMM_WIDTH, GEMM_WIDTH)
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        torch.mm(a, a)
        best = min(best, time.perf_counter() - start)
    return 2 * GEMM_WIDTH**3 / best / 1e9


def operations(size: Size) -> float:
    """Return the plain operations of one training step of one model.

    Two for each weight and position, as many again twice for the backward pass.
    """
    model = size.model
    heads = model.n_heads * (model.d_k + model.d_v)
    n_mlp = 3 if model.activation == "swiglu" else 2
    a_position = 2 * model.d_model * heads + n_mlp * model.d_model * model.d_ff + LENGTH * heads
    a_sequence = LENGTH * (model.n_layers * a_position + model.d_model * size.vocabulary)
    return 6.0 * size.batch * a_sequence


def table(rows: Sequence[Row], threads: int) -> str:
    """Return the table: medians, with the least and the most of all rounds in brackets."""
    lines = [
        f"milliseconds a step of one model, {threads} threads, torch {torch.__version__}; "
        "median [least, most] of alternating rounds",
        f"{'size':8}{'models':>7}{'rounds':>7}{'engine':>28}{'plain':>28}"
        f"{'times faster':>20}{'promised':>9}{'last only':>12}{'':>6}"
        f"{'GEMM peak GFLOP/s':>22}{'used':>6}",
    ]
    for row in rows:
        engine = f"{row.engine_ms:.2f} [{row.engine_low:.2f}, {row.engine_high:.2f}]"
        plain = f"{row.plain_ms:.2f} [{row.plain_low:.2f}, {row.plain_high:.2f}]"
        faster = f"{row.speedup:.2f} [{row.speedup_low:.2f}, {row.speedup_high:.2f}]"
        peak = f"{row.peak_gflops:.0f} [{row.peak_low:.0f}, {row.peak_high:.0f}]"
        lines.append(
            f"{row.size:8}{row.n_models:>7}{row.rounds:>7}{engine:>28}{plain:>28}"
            f"{faster:>20}{row.least:>9.1f}{row.last_only_ms:>12.2f}{row.last_only_speedup:>6.2f}{peak:>22}{row.engine_utilisation:>6.2f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(tyro.cli(main))

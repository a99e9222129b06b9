"""What apply costs beside torch's own normal_, and how much memory it takes beyond the model.

python -m benchmarks.apply --parameters 1e9
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import tyro
from torch import nn

from initrate.frameworks.torch import apply
from initrate.rule import BLOCK

_WIDTH = 4096


@dataclass(frozen=True)
class Cost:
    """Seconds by the clock, and of all processors together."""

    wall: float
    cpu: float


def build(parameters: int) -> nn.Module:
    """Return square maps that have about this many float32 values."""
    n = max(1, round(parameters / _WIDTH**2))
    with torch.device("meta"):
        model = nn.ModuleList(nn.Linear(_WIDTH, _WIDTH, bias=False) for _ in range(n))
    model.to_empty(device="cpu")
    for parameter in model.parameters():
        nn.init.zeros_(parameter)  # So that the memory is there before anything is timed.
    return model


def cost(work: Callable[[], object]) -> Cost:
    """Return what one run costs."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def least(found: list[Cost]) -> Cost:
    """Return the least of several costs."""
    return Cost(min(c.wall for c in found), min(c.cpu for c in found))


def main(parameters: float = 1e8, repeats: int = 3) -> int:
    """Print the cost of apply as a ratio to that of normal_ over the same values.

    Args:
        parameters: How many float32 values the model has, about.
        repeats: How often each is run, in turns; the fastest counts.
    """
    model = build(int(parameters))
    n, threads = sum(p.numel() for p in model.parameters()), torch.get_num_threads()

    def normal() -> None:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_()

    def draw(seed: int) -> None:
        apply(model, gamma=0.5, seed=seed)

    # In turns, so that what else the machine does meets all of them alike.
    runs: list[tuple[Cost, Cost, Cost]] = []
    for seed in range(repeats):
        runs.append((cost(normal), cost(partial(draw, seed)), cost(partial(draw, seed))))
    theirs, ours, again = (least(list(found)) for found in zip(*runs, strict=True))
    tracemalloc.start()
    draw(repeats)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    print(f"{n:,} float32 values, {threads} threads")
    for name, found in (("normal_", theirs), ("apply", ours), ("apply, the same again", again)):
        print(
            f"{name:22} {found.wall:8.2f} s, {found.wall / n * 1e9:6.2f} ns a value by the clock; "
            f"{found.cpu / n * 1e9:6.2f} ns of processors"
        )
    print(
        f"ratio by the clock {ours.wall / theirs.wall:.2f}, of processors "
        f"{ours.cpu / theirs.cpu:.2f}"
    )
    block = BLOCK * 4
    print(
        f"memory beyond the model {peak / 1024:,.0f} KiB: {peak / threads / block:.2f} blocks of "
        f"{BLOCK:,} float32 values a thread"
    )
    return 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main))

"""`--dry-run`: what a study would take, told before it begins; nothing is written."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from initrate.cli._options import ExecutionOptions
from initrate.report import duration
from initrate.study import Cost, GridPoint, StudyConfig, cost, grid, measure_speed, plan_execution


@dataclass(frozen=True, slots=True)
class Size:
    """The cells of one size of model: how many, and what they take."""

    depth: int
    d_model: int
    n_cells: int
    n_buckets: int
    parameters: int
    """Of one model."""
    operations: float
    """Of all of them."""
    memory: float
    """Bytes of the widest bucket."""
    seconds: float
    """To expect, at the speed that was measured."""


def dry_run(config: StudyConfig, options: ExecutionOptions, folder: Path) -> int:
    """Print what the study would take and return the exit code."""
    sizes = sizes_of(config, options)
    if options.json:
        json.dump(_as_json(sizes, folder), sys.stdout, indent=1)
        print()
    else:
        _print(sizes, folder)
    return 0


def sizes_of(config: StudyConfig, options: ExecutionOptions) -> list[Size]:
    """Return a row a size of model; the speed of each is measured, which takes a second."""
    points = {point.id: point for point in grid(config)}
    plan = plan_execution(config, threads=options.threads, memory_limit=options.memory_limit)
    buckets: dict[tuple[int, int, int], list[list[GridPoint]]] = {}
    for bucket in plan.buckets:
        members = [points[cell] for cell in bucket.cells]
        first = members[0].cell
        size = (first.model.n_layers, first.model.d_model, first.training.batch)
        buckets.setdefault(size, []).append(members)
    speeds: dict[tuple[int, int], float] = {}
    sizes: list[Size] = []
    for (depth, d_model, batch), of_size in buckets.items():
        if (d_model, batch) not in speeds:
            speeds[d_model, batch] = measure_speed(of_size[0][0].cell, threads=plan.threads)
        sizes.append(_size(depth, d_model, of_size, speeds[d_model, batch]))
    return sizes


def _size(depth: int, d_model: int, buckets: Sequence[Sequence[GridPoint]], speed: float) -> Size:
    costs: list[list[Cost]] = [[cost(point.cell) for point in members] for members in buckets]
    flat = [entry for of_bucket in costs for entry in of_bucket]
    return Size(
        depth=depth,
        d_model=d_model,
        n_cells=len(flat),
        n_buckets=len(buckets),
        parameters=flat[0].parameters,
        operations=sum(entry.operations for entry in flat),
        memory=max(sum(entry.memory for entry in of_bucket) for of_bucket in costs),
        seconds=sum(entry.seconds(speed) for entry in flat),
    )


def _as_json(sizes: Sequence[Size], folder: Path) -> dict[str, object]:
    return {
        "schema": 1,
        "study": str(folder),
        "n_cells": sum(size.n_cells for size in sizes),
        "n_buckets": sum(size.n_buckets for size in sizes),
        "operations": sum(size.operations for size in sizes),
        "memory": max(size.memory for size in sizes),
        "seconds": sum(size.seconds for size in sizes),
        "sizes": [
            {name: getattr(size, name) for name in Size.__dataclass_fields__} for size in sizes
        ],
    }


def _print(sizes: Sequence[Size], folder: Path) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    heads = ("depth", "width", "runs", "buckets", "parameters", "operations", "memory", "time")
    for head in heads:
        table.add_column(head, justify="right")
    for size in sizes:
        table.add_row(
            *(str(size.depth), str(size.d_model), str(size.n_cells), str(size.n_buckets)),
            *(f"{size.parameters:,}", f"{size.operations:.2g}", f"{size.memory / 2**30:.2f} GiB"),
            duration(size.seconds),
        )
    Console(highlight=False).print(table)
    n_cells, n_buckets = (sum(getattr(s, n) for s in sizes) for n in ("n_cells", "n_buckets"))
    total = duration(sum(size.seconds for size in sizes))
    print(f"{folder}: {n_cells} runs in {n_buckets} buckets, about {total} on this machine")

"""How a study is run: its buckets, their order and width; stored, so that it can be replayed."""

from __future__ import annotations

import math
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal, cast, get_args

from initrate.errors import InputError, StoreError, unknown, whole_number
from initrate.files import load_json, shown
from initrate.model import ModelConfig
from initrate.study._config import GridPoint, StudyConfig, grid
from initrate.study._cost import cost
from initrate.study._sections import digest
from initrate.tasks import AnchorTask
from initrate.training import Execution, Training, shared_training

Dtype = Literal["float32", "float64", "bfloat16"]
Shared = tuple[AnchorTask, ModelConfig, Training]
"""What the cells of a bucket have in common."""

GIBIBYTE = 2**30
USUAL_MEMORY = 1.25 * GIBIBYTE
"""What the models of a bucket may take where no limit is given; torch itself takes some more."""
WIDEST = 8
"""More models than this in a bucket gain nothing on a processor's caches."""
_MOST_MEMORY = 10**9
_BUCKET = re.compile(r"[0-9]{4,6}-[0-9a-f]{8}")
_DEVICE = re.compile(r"cpu|mps|cuda(:[0-9]{1,3})?")
NARROWEST = 4
"""Seeds are taken together until the buckets have this many models, as far as there are any."""


@dataclass(frozen=True, slots=True)
class PlannedBucket:
    """Cells that are trained together."""

    id: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """How all cells of a study are run; the same plan and environment give the same bits."""

    threads: int
    dtype: Dtype
    device: str
    tf32: bool
    buckets: tuple[PlannedBucket, ...]

    @property
    def execution(self) -> Execution:
        """What the engine is told."""
        return Execution(threads=self.threads, dtype=self.dtype, device=self.device, tf32=self.tf32)

    def to_dict(self) -> dict[str, object]:
        """Return the plan as plain values."""
        plan = asdict(self)
        plan["buckets"] = [{"id": b.id, "cells": list(b.cells)} for b in self.buckets]
        return plan

    @classmethod
    def from_dict(cls, table: Mapping[str, object]) -> ExecutionPlan:
        """Return the plan of such values."""
        names = [field.name for field in fields(cls)]
        if sorted(table) != sorted(names):
            raise StoreError(
                f"the execution plan has {sorted(table)}: expected the keys {sorted(names)}"
            )
        buckets = table["buckets"]
        if not isinstance(buckets, list):
            raise StoreError("the execution plan has no list of buckets")
        planned = tuple(_planned(entry) for entry in cast("list[object]", buckets))
        plan = cls(**{**cast("dict[str, object]", dict(table)), "buckets": planned})  # pyright: ignore[reportArgumentType]
        check_options(plan.threads, plan.dtype, plan.device)
        if not isinstance(plan.tf32, bool):
            raise StoreError(f"the execution plan has tf32 {plan.tf32!r}: expected true or false")
        ids = [bucket.id for bucket in planned]
        if len({*ids}) < len(ids):
            raise StoreError("the execution plan names a bucket twice: expected each once")
        return plan


def read_plan(file: Path | str) -> ExecutionPlan:
    """Return the execution plan of a file, such as the `execution.json` of a study."""
    path = Path(file)
    found = load_json(path)
    if not isinstance(found, Mapping):
        raise InputError(f"{shown(path)} holds no table: expected an execution plan")
    try:
        return ExecutionPlan.from_dict(cast("Mapping[str, object]", found))
    except InputError as error:
        raise InputError(f"{shown(path)}: {error}") from error


def check_plan(plan: ExecutionPlan, config: StudyConfig) -> None:
    """Check that a plan that was given trains the cells of this study, equal shapes together."""
    points = {point.id: point for point in grid(config)}
    planned = [cell for bucket in plan.buckets for cell in bucket.cells]
    if sorted(planned) != sorted(points):
        missing = len(points.keys() - set(planned))
        other = len([cell for cell in planned if cell not in points])
        raise InputError(
            f"the execution plan is of other cells than the study: {missing} of its {len(points)} "
            f"are missing, and {other} others are there; take the plan of a study of the same cells"
        )
    for bucket in plan.buckets:
        if len({_shared(points[cell]) for cell in bucket.cells}) > 1:
            raise InputError(
                f"the execution plan has cells of several shapes in the bucket {bucket.id}: "
                "expected models of one shape, trained by one recipe"
            )


def plan_execution(
    config: StudyConfig,
    *,
    threads: int | None = None,
    memory_limit: float | None = None,
    dtype: Dtype = "float32",
    device: str = "cpu",
    tf32: bool = False,
) -> ExecutionPlan:
    """Return how to run a study: a deterministic choice, given the machine's count of cores.

    `memory_limit` is in GiB and holds for the models of a bucket; without one, a model that alone
    takes more than usual is run alone.
    """
    threads = n_cores() if threads is None else threads
    check_options(threads, dtype, device)
    check_memory(memory_limit)
    buckets: list[PlannedBucket] = []
    for group in _groups(config):
        width = _width(group, memory_limit)
        n_buckets = math.ceil(len(group) / width)
        # Even shares: nine models are five and four, and not eight and one.
        bounds = [round(k * len(group) / n_buckets) for k in range(n_buckets + 1)]
        for first, last in pairwise(bounds):
            ids = tuple(point.id for point in group[first:last])
            buckets.append(PlannedBucket(f"{len(buckets):04d}-{digest(ids)[:8]}", ids))
    return ExecutionPlan(threads, dtype, device, tf32, tuple(buckets))


def n_cores() -> int:
    """Return how many cores this process may use: a container may have fewer than its machine.

    >>> n_cores() >= 1
    True
    """
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _groups(config: StudyConfig) -> list[list[GridPoint]]:
    """Points of equal shapes, seed by seed; few such points of one seed wait for further seeds."""
    points = grid(config)
    size = math.prod(len(values) for values in config.all_axes.values())
    by_seed = [points[k : k + size] for k in range(0, len(points), size)]
    keys = {point.id: _shared(point) for point in points}
    narrowest = min(Counter(keys[point.id] for point in by_seed[0]).values())
    together = math.ceil(NARROWEST / narrowest)
    groups: list[list[GridPoint]] = []
    for k in range(0, len(by_seed), together):
        round_groups: dict[Shared, list[GridPoint]] = {}
        for point in (p for seed in by_seed[k : k + together] for p in seed):
            round_groups.setdefault(keys[point.id], []).append(point)
        groups += round_groups.values()
    return groups


def _shared(point: GridPoint) -> Shared:
    cell = point.cell
    return cell.task, cell.model, _shared_training(cell.training)


_shared_training = lru_cache(maxsize=4096)(shared_training)
"""Every seed has the same recipes."""


def _width(group: Sequence[GridPoint], memory_limit: float | None) -> int:
    one = cost(group[0].cell).memory
    limit = USUAL_MEMORY if memory_limit is None else memory_limit * GIBIBYTE
    if memory_limit is not None and one > limit:
        raise InputError(
            f"one model of depth {group[0].cell.model.n_layers} takes about "
            f"{one / GIBIBYTE:.2g} GiB: the memory limit is {memory_limit:g} GiB; raise it, or "
            "take a smaller batch"
        )
    return max(1, min(WIDEST, int(limit // one)))


def check_there(device: str) -> None:
    """Check that this machine has the device; torch is asked, unless it is the processor."""
    kind, _, number = device.partition(":")
    if kind == "cpu":
        return
    import torch

    n = torch.cuda.device_count() if kind == "cuda" else int(torch.backends.mps.is_available())
    if int(number or 0) >= n:
        raise InputError(
            f"device is {device!r}: torch finds {n or 'no'} {kind} device{'s' * (n != 1)} here; "
            "take another, such as 'cpu'"
        )


def check_options(threads: object, dtype: object, device: object) -> None:
    """Check the options of an execution plan, each for itself."""
    whole_number("threads", threads, least=1, most=1024)
    if not isinstance(dtype, str) or dtype not in get_args(Dtype):
        raise unknown("dtype", dtype, get_args(Dtype))
    if not isinstance(device, str) or not _DEVICE.fullmatch(device):
        raise InputError(f"device is {device!r}: expected 'cpu', 'cuda', 'cuda:1' or 'mps'")


def check_memory(limit: object) -> None:
    """Check a memory limit in GiB, or None."""
    if limit is None:
        return
    if isinstance(limit, int | float) and not isinstance(limit, bool):
        if 0 < limit <= _MOST_MEMORY:
            return
    shown = repr(limit) if not isinstance(limit, int) or limit < 10**20 else "beyond all bounds"
    raise InputError(
        f"the memory limit is {shown}: expected GiB above zero, at most {_MOST_MEMORY:,}"
    )


def _planned(entry: object) -> PlannedBucket:
    if isinstance(entry, Mapping):
        found = cast("Mapping[str, object]", entry)
        name, ids = found.get("id"), found.get("cells")
        whole = isinstance(ids, list) and all(isinstance(i, str) for i in cast("list[object]", ids))
        # The name of a bucket is that of a folder.
        named = isinstance(name, str) and _BUCKET.fullmatch(name)
        if isinstance(name, str) and named and ids and whole and len(found) == 2:
            return PlannedBucket(name, tuple(cast("list[str]", ids)))
    raise StoreError(f"the execution plan holds {str(entry)[:80]!r}: expected a bucket")

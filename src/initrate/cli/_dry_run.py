"""`--dry-run`: what a study would take, told before it begins; nothing is written."""

from __future__ import annotations

import errno
import json
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from initrate.cli._options import StudyOptions
from initrate.cli._output import show, tell, write
from initrate.files import refused, shown
from initrate.report import count_of
from initrate.study import (
    Cost,
    GridPoint,
    Prospect,
    StudyConfig,
    cost,
    grid,
    measure_speed,
    prospect,
    reading,
    study_notes,
)

SECONDS = 3.0
"""What measuring the speed takes at most, whatever sizes there are."""


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
    seconds: float | None
    """To expect, at the speed that was measured; None where none was."""


def dry_run(config: StudyConfig, options: StudyOptions, folder: Path) -> int:
    """Print what the study would take and return the exit code.

    What the run itself would refuse is refused here, before anything is measured; but the device
    may be one of another machine, to plan for it.
    """
    found = prospect(
        config,
        folder,
        **options.of_plan(),
        plan=options.plan(),
        there=False,
    )
    check_may_write(folder)
    sizes: list[Size] = []
    load = busy_cores()
    if found.waiting:
        announce(found)
        sizes = sizes_of(config, found)
    for note in study_notes(config):
        tell(note)
    n_done = found.store.progress()[0] if found.store else 0
    if options.json:
        write(json.dumps(_as_json(sizes, folder, n_done), indent=1))
    else:
        print_sizes(sizes, folder, n_done, load)
    return 0


def is_timed(found: Prospect) -> bool:
    """Return whether the time can be told: a speed is measured of processors alone."""
    return found.plan.device.partition(":")[0] == "cpu"


def announce(found: Prospect) -> None:
    """Tell that a speed is about to be measured, or why none is."""
    if is_timed(found):
        tell("measuring the speed of this machine …")
    else:
        tell(
            f"no time is estimated: the study is for {found.plan.device}, and only the speed of a "
            "processor is measured here"
        )


def busy_cores() -> float:
    """How many cores work takes, over the last minute; 0 where the system does not say."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return 0.0


def check_may_write(folder: Path) -> None:
    """Check that a study may be written to a folder, or a folder made there; nothing is written."""
    with reading(folder):
        place = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        if not place.is_dir():
            raise refused(folder, NotADirectoryError(errno.ENOTDIR, ""))
        if not os.access(place, os.W_OK | os.X_OK):
            raise refused(place, PermissionError(errno.EACCES, ""))


def sizes_of(config: StudyConfig, found: Prospect) -> list[Size]:
    """Return a row a size of model not trained yet; speed is measured for `SECONDS` in all."""
    points = {point.id: point for point in grid(config)}
    buckets: dict[tuple[int, int, int], list[list[GridPoint]]] = {}
    for bucket in found.waiting:
        members = [points[cell] for cell in bucket.cells]
        first = members[0].cell
        size = (first.model.n_layers, first.model.d_model, first.training.batch)
        buckets.setdefault(size, []).append(members)
    speeds: dict[tuple[int, int], float] = {}
    each = SECONDS / len({key[1:] for key in buckets})
    end, speed = time.monotonic() + SECONDS, 0.0
    sizes: list[Size] = []
    for (depth, d_model, batch), of_size in buckets.items():
        # One product of a large size may take seconds: sizes left over then have the last speed.
        due = is_timed(found) and (d_model, batch) not in speeds
        if due and (not speed or time.monotonic() < end):
            cell = of_size[0][0].cell
            speed = measure_speed(cell, seconds=min(each, 0.5), threads=found.plan.threads)
            speeds[d_model, batch] = speed
        sizes.append(_size(depth, d_model, of_size, speeds.get((d_model, batch), speed)))
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
        seconds=sum(entry.seconds(speed) for entry in flat) if speed else None,
    )


def _as_json(sizes: Sequence[Size], folder: Path, n_done: int) -> dict[str, object]:
    return {
        "schema": 1,
        "study": str(folder),
        "n_cells": n_done + sum(size.n_cells for size in sizes),
        "n_done": n_done,
        "n_buckets": sum(size.n_buckets for size in sizes),
        "operations": sum(size.operations for size in sizes),
        "memory": max((size.memory for size in sizes), default=0.0),
        "seconds": seconds_of(sizes),
        "sizes": [
            {name: getattr(size, name) for name in Size.__dataclass_fields__} for size in sizes
        ],
    }


def seconds_of(sizes: Sequence[Size]) -> float | None:
    """Return the time to expect of all sizes, or None where one is not known."""
    known = [size.seconds for size in sizes if size.seconds is not None]
    return sum(known) if len(known) == len(sizes) else None


def print_sizes(sizes: Sequence[Size], folder: Path, n_done: int = 0, load: float = 0.0) -> None:
    """Print a row a size of model, and the study in a line; of what is done, how much it is.

    `load` is how many cores of the machine other work took while the speed was measured.
    """
    if not sizes:
        write(f"{shown(folder)}: {count_of(n_done, 'run')} done already, and nothing left to train")
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    seconds = seconds_of(sizes)
    heads = ("depth", "width", "runs", "buckets", "parameters", "operations", "memory", "time")
    for head in heads if seconds is not None else heads[:-1]:
        table.add_column(head, justify="right", no_wrap=True)
    for size in sizes:
        table.add_row(
            *(str(size.depth), str(size.d_model), str(size.n_cells), str(size.n_buckets)),
            *(f"{size.parameters:,}", f"{size.operations:.2g}", f"{size.memory / 2**30:.2f} GiB"),
            *([] if size.seconds is None or seconds is None else [roughly(size.seconds)]),
        )
    show(table)
    n_cells, n_buckets = (sum(getattr(s, n) for s in sizes) for n in ("n_cells", "n_buckets"))
    runs, buckets = count_of(n_cells, "run"), count_of(n_buckets, "bucket")
    done = f"{count_of(n_done, 'run')} done already, the rest: " if n_done else ""
    time_words = "" if seconds is None else f", about {roughly(seconds)} {_condition(load)}"
    write(f"{shown(folder)}: {done}{runs} in {buckets}{time_words}")


def _condition(load: float) -> str:
    """What the time holds for: on a busy machine the speed is measured too low."""
    if load <= 1:
        return "on this machine if nothing else runs on it"
    return (
        f"on this machine; other work runs on it now (load {load:.1f}), so that this estimate is "
        "too high"
    )


def roughly(seconds: float) -> str:
    """Return a length of time with the digits that an estimate has.

    >>> roughly(3), roughly(47), roughly(588), roughly(9300), roughly(86400 * 41)
    ('3 s', '45 s', '10 min', '3 h', '40 days')
    >>> roughly(3.5e9), roughly(1e30)
    ('110 years', '3e+22 years')
    """
    year = 365 * 86_400
    if not seconds < 1e6 * year:
        return f"{seconds / year:.0e} years"
    units = {"years": year, "days": 86_400, "h": 3600, "min": 60, "s": 1}
    # A unit is taken from about two of it on, so that whole ones say enough.
    unit = next((name for name, length in units.items() if seconds >= 1.95 * length), "s")
    number = max(seconds / units[unit], 1)
    step = 1 if number < 20 else 5 if number < 100 else 10 ** (math.floor(math.log10(number)) - 1)
    return f"{round(number / step) * step:,} {unit}"

"""A search on real cells: each round an ordinary study, trained by `initrate.study.run`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from initrate.boundary._choice import Batch, choose_batch
from initrate.boundary._crossings import Reading
from initrate.boundary._curves import draw_curves
from initrate.boundary._find import FAILED, HIT, MISS, UNTRIED, Labels, find
from initrate.boundary._folder import begin_folder, begun_rounds, round_path, round_study
from initrate.boundary._result import Boundary, SearchResult, boundary_of, result_of
from initrate.boundary._search import Search, plan_search
from initrate.study import Store, StudyConfig, folder_path, run

TrainRound = Callable[[StudyConfig, Path], Store]
"""What trains the study of a round in its folder and returns its store."""


def search(
    config: StudyConfig,
    folder: Path | str,
    *,
    on_reading: Callable[[Boundary], None] | None = None,
    run_options: dict[str, Any] | None = None,
    **asked: Any,
) -> SearchResult:
    """Return the boundaries of a study's label along an axis, trained in as few cells as it takes.

    `asked` is what `plan_search` takes: `axis`, `by`, `labels`, `resolution`, `confidence` ...;
    `run_options` is what `initrate.study.run` takes. The same call goes on where a search was
    interrupted, and returns at once where it is done; another search in the folder is a
    `StoreError`. `on_reading` is told of a row whenever it was looked at anew.
    """
    train = partial(run, **(run_options or {}))
    return run_search(plan_search(config, **asked), folder_path(folder), train, on_reading)


def run_search(
    search: Search,
    folder: Path,
    train: TrainRound,
    on_reading: Callable[[Boundary], None] | None = None,
) -> SearchResult:
    """Return what a planned search finds; `train` trains the study of each round."""
    begin_folder(folder, search)
    begun = begun_rounds(folder, search)
    paths = iter([path for path, _ in begun])
    count = len(begun)

    def ask(batch: Batch) -> Labels:
        nonlocal count
        path = next(paths, None)
        if path is None:
            count += 1
            path = round_path(folder, search, count, batch)
        return _trained(search, batch, path, train)

    def tell(row: int, reading: Reading, labels: Labels) -> None:
        if on_reading and (labels[row] != UNTRIED).any():
            on_reading(boundary_of(search, row, reading, labels))

    found = find(
        search.shape,
        ask,
        aim=search.aim,
        width=search.width,
        begun=[batch for _, batch in begun],
        on_reading=tell,
    )
    return result_of(search, folder, found)


def first_batch(search: Search) -> Batch:
    """Return the cells of the first row that are trained first, whatever their labels."""
    none = np.zeros(search.shape.values)
    untried = np.ones(search.shape[1:], dtype=bool)
    batch = choose_batch(draw_curves(none, none), untried, width=search.width)
    assert batch is not None  # Before any label, every cell tells something.
    return batch


def _trained(search: Search, batch: Batch, path: Path, train: TrainRound) -> Labels:
    """The labels of a round, trained as far as it is not yet."""
    config = round_study(search, batch)
    store = Store.open(path) if path.exists() else None
    if store is None or store.status != "done":
        store = train(config, path)
    labels = {
        (row[search.axis], row["seed"]): HIT if row["label"] in search.labels else MISS
        for row in store.cells().iter_rows(named=True)
    }
    values, seeds = config.axes[search.axis], config.seeds
    told = [[labels.get((found, seed), FAILED) for seed in seeds] for found in values]
    return np.array(told, dtype=np.int8)

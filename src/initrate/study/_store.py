"""The store: the folder of a study, read as tables."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from initrate.errors import InputError, StoreError, in_line, unknown
from initrate.files import leftovers, make_folder, read_bounded, shown, write_whole
from initrate.study import _folder
from initrate.study._columns import wrong_axis, wrong_in
from initrate.study._config import StudyConfig
from initrate.study._execution import ExecutionPlan
from initrate.study._label import Thresholds
from initrate.study._lock import held, is_held
from initrate.study._part import Part, read_part, read_table, read_weights, wrong_part
from initrate.study._summary import labelled, summary_rows
from initrate.study._tables import COLUMNS, TIMING, parquet, polars, stacked

if TYPE_CHECKING:
    from polars import DataFrame

_TIMING_BYTES = 10_000_000
INDEX = "cells.parquet"
"""All cells in one table, for other tools; made anew from the parts whenever a run ends."""


@dataclass(frozen=True, slots=True)
class Store:
    """A study folder, open for reading; everything it returns is read from the parts.

    A part's checksums are checked when one of its tables is first read.
    """

    path: Path
    config: StudyConfig
    plan: ExecutionPlan
    thresholds: Thresholds
    _known: dict[str, Part] = field(default_factory=dict, repr=False, compare=False)
    _read: dict[tuple[str, str], DataFrame] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def open(cls, path: Path | str) -> Store:
        """Return the store of a study folder; a folder that is none is a `StoreError`."""
        folder = _folder.folder_path(path)
        return cls(folder, *_folder.read_study(folder))

    def checkpoint(self, bucket: str) -> Path:
        """Return where a bucket leaves its checkpoint while it is under way."""
        return self.path / _folder.RUNNING / f"{bucket}.checkpoint"

    @property
    def status(self) -> Literal["done", "running", "unfinished"]:
        """Whether all cells are trained, a process is at work on them, or neither."""
        n_done, n_cells = self.progress()
        if n_done == n_cells:
            return "done"
        return "running" if is_held(self.path / _folder.LOCK) else "unfinished"

    @property
    def sessions(self) -> list[dict[str, object]]:
        """The environments that the study was run in: host, date and versions of each session."""
        return _folder.read_sessions(self.path)

    def parts(self) -> dict[str, Part]:
        """Return the finished parts by bucket, in the order of the plan."""
        with _folder.reading(self.path):
            return self._parts(self.path / _folder.PARTS)

    def _parts(self, folder: Path) -> dict[str, Part]:
        unfinished = set(leftovers(folder))
        names = {entry.name for entry in folder.iterdir() if entry not in unfinished}
        planned = {bucket.id: bucket.cells for bucket in self.plan.buckets}
        for name in sorted(names - set(planned)):
            raise StoreError(
                f"{shown(folder / name)} is no part of this study: move it out of the folder"
            )
        for bucket in sorted(names - set(self._known)):
            part = read_part(folder / bucket)
            if part.cells != planned[bucket]:
                raise StoreError(
                    f"part {shown(part.folder)} holds other cells than planned: remove its "
                    "folder and run the study again"
                )
            self._known[bucket] = part
        return {bucket: self._known[bucket] for bucket in planned if bucket in names}

    def progress(self) -> tuple[int, int]:
        """Return how many cells are trained, and how many there are."""
        n_done = sum(len(part.cells) for part in self.parts().values())
        return n_done, sum(len(bucket.cells) for bucket in self.plan.buckets)

    def cells(self, bucket: str | None = None) -> DataFrame:
        """Return a row a trained cell: what it is, its scalars, its fit and its label."""
        return labelled(self._table("cells", bucket=bucket), self.thresholds)

    def curves(self, cell: str | None = None) -> DataFrame:
        """Return a row a cell and logged step: loss, accuracies on the small splits, lr."""
        return self._table("curves", cell)

    def counts(self, cell: str | None = None) -> DataFrame:
        """Return the counts of right answers by split, pair, key and position."""
        return self._table("counts", cell)

    def shifts(self, cell: str | None = None) -> DataFrame:
        """Return the histogram of prediction minus key by split and pair."""
        return self._table("shifts", cell)

    def tensors(self, cell: str | None = None) -> DataFrame:
        """Return a row a cell and tensor: std and norm at the beginning and the end."""
        return self._table("tensors", cell)

    def timing(self) -> DataFrame:
        """Return a row a bucket: when, where and how long it was trained."""
        pl = polars()
        found: list[DataFrame] = []
        with _folder.reading(self.path):
            folder = self.path / _folder.TIMING
            # Not `glob`, which takes a folder that may not be read for an empty one.
            names = sorted(folder.iterdir()) if folder.exists() else []
            paths = [path for path in names if path.suffix == ".parquet"]
        for path in paths:
            try:
                data = read_bounded(path, _TIMING_BYTES, links=False)
                table = pl.read_parquet(io.BytesIO(data))
            except (pl.exceptions.PolarsError, OSError) as error:
                raise StoreError(f"{shown(path)} is not a Parquet table: remove it") from error
            except InputError as error:
                raise StoreError(str(error)) from error
            wrong = wrong_in(table, "timing")
            if wrong:
                raise StoreError(f"{shown(path)} {wrong}: remove it")
            found.append(table)
        return stacked(found, TIMING)

    def weights(self, cell: str) -> dict[str, NDArray[np.float32]]:
        """Return the final weights of a trained cell, by canonical name."""
        parts = self.parts().values()
        for part in parts:
            if isinstance(cell, str) and cell in part.cells:
                return read_weights(part, cell)
        raise unknown("cell", cell, [name for part in parts for name in part.cells][:1000])

    def summary(self) -> list[dict[str, object]]:
        """Return a row a point of the grid, over its seeds: counts of labels, median, interval."""
        return summary_rows(self.cells(), self.config)

    def write_index(self) -> Path:
        """Write all cells, with their labels, as one table for other tools; return its path."""
        write_whole(self.path / INDEX, parquet(self.cells()))
        return self.path / INDEX

    def _table(self, name: str, cell: str | None = None, *, bucket: str | None = None) -> DataFrame:
        for kind, given in {"cell": cell, "bucket": bucket}.items():
            if given is not None and not isinstance(given, str):
                raise InputError(f"{kind} is {in_line(given)}: expected the id of a {kind}")
        tables: list[DataFrame] = []
        for found, part in self.parts().items():
            if bucket not in (None, found) or (cell is not None and cell not in part.cells):
                continue
            if (found, name) not in self._read:
                table = read_table(part, name)
                wrong = wrong_axis(table, self.config.all_axes) if name == "cells" else ""
                if wrong:
                    raise wrong_part(part.folder, f"{name}.parquet {wrong}")
                self._read[found, name] = table
            tables.append(self._read[found, name])
        axes = self.config.all_axes if name == "cells" else {}
        table = stacked(tables, list(dict.fromkeys([*COLUMNS[name], *axes])))
        return table if cell is None else table.filter(polars().col("cell") == cell)


def relabel(store: Store, thresholds: Thresholds | Mapping[str, object] | None = None) -> Store:
    """Return the store with its labels taken anew, by other thresholds, which are stored."""
    chosen = Thresholds() if thresholds is None else thresholds
    chosen = chosen if isinstance(chosen, Thresholds) else Thresholds.from_dict(chosen)
    make_folder(store.path / _folder.RUNNING)
    with held(store.path / _folder.LOCK):
        _folder.write_study_json(store.path, store.config, chosen)
        again = replace(store, thresholds=chosen)
        again.write_index()
    return again

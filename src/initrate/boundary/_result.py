"""What a search came to: the boundaries in units of the axis, and the cost beside the full grid."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from initrate.boundary._crossings import Crossing, Reading
from initrate.boundary._curves import Floats
from initrate.boundary._find import FAILED, MISS, Found, Labels
from initrate.boundary._search import Search, Value
from initrate.study import cost, grid


@dataclass(frozen=True, slots=True)
class Boundary:
    """What was found at one value of the second axis."""

    at: Value
    crossings: tuple[Crossing, ...]
    """In rising order, in units of the axis."""
    doubt: float
    """Probability that there are other crossings than these."""
    resolved: bool
    """Whether all is as sure and as close as it was to be."""
    cells: int
    """Cells that were trained here."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The boundaries that a search found, and what it took beside the full grid."""

    search: Search
    folder: Path
    boundaries: tuple[Boundary, ...]
    labels: Labels
    """Shape (rows, values, seeds): 1 has the label, 0 another one, -1 failed, -2 not trained."""
    operations: float
    full_grid_operations: float

    @property
    def cells(self) -> int:
        """How many cells were trained."""
        return int((self.labels >= MISS).sum())

    @property
    def full_grid_cells(self) -> int:
        """How many cells the full grid has."""
        return self.labels.size

    @property
    def n_failed(self) -> int:
        """How many cells failed."""
        return int((self.labels == FAILED).sum())

    def to_dict(self) -> dict[str, object]:
        """Return the result as `initrate boundary --json` writes it."""
        search = self.search
        return {
            "schema": 1,
            "folder": str(self.folder),
            "axis": search.axis,
            "by": search.by,
            "label": search.labels[0] if len(search.labels) == 1 else list(search.labels),
            "resolution": search.resolution,
            "confidence": search.aim.confidence,
            "boundaries": [
                {
                    search.by: boundary.at,
                    "crossings": [
                        {"estimate": c.estimate, "low": c.low, "high": c.high, "rises": c.rises}
                        for c in boundary.crossings
                    ],
                    "resolved": boundary.resolved,
                }
                for boundary in self.boundaries
            ],
            "cells": self.cells,
            "full_grid_cells": self.full_grid_cells,
            "operations": self.operations,
            "full_grid_operations": self.full_grid_operations,
        }


def operations_by_cell(search: Search) -> Floats:
    """Return what training a cell takes, in operations; shape (rows, values)."""
    study = search.study
    n_first = search.shape.rows * search.shape.values
    by_place = {
        (point.axes[search.by], point.axes[search.axis]): cost(point.cell).operations
        for point in grid(study)[:n_first]
    }
    table = [[by_place[row, found] for found in search.values] for row in search.rows]
    return np.array(table, dtype=float)


def result_of(search: Search, folder: Path, found: Found) -> SearchResult:
    """Return what was found, in units of the axis, with what the cells take."""
    operations = operations_by_cell(search)
    trained = (found.labels >= MISS).sum(axis=-1)
    return SearchResult(
        search=search,
        folder=folder,
        boundaries=tuple(
            boundary_of(search, row, reading, found.labels)
            for row, reading in enumerate(found.readings)
        ),
        labels=found.labels,
        operations=float((operations * trained).sum()),
        full_grid_operations=float(operations.sum() * search.shape.seeds),
    )


def boundary_of(search: Search, row: int, reading: Reading, labels: Labels) -> Boundary:
    """Return the reading of a row in units of the axis."""
    return Boundary(
        at=search.rows[row],
        crossings=tuple(
            Crossing(
                search.place(crossing.estimate),
                search.place(crossing.low),
                search.place(crossing.high),
                crossing.rises,
            )
            for crossing in reading.crossings
        ),
        doubt=reading.doubt,
        resolved=reading.resolved,
        cells=int((labels[row] >= MISS).sum()),
    )

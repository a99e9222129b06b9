"""The board: what is known so far of every cell of a study, and where it lies in the diagram."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from initrate.study import GridPoint, StudyConfig, cost, grid

Row = Mapping[str, object]
Place = tuple[object, ...]
"""Values of the axes, in their order."""


@dataclass(slots=True)
class Board:
    """The cells of a study by place, their rows when done and their last scores while trained."""

    config: StudyConfig
    points: tuple[GridPoint, ...] = ()
    done: dict[str, Row] = field(default_factory=dict)
    running: dict[str, Row] = field(default_factory=dict)
    fractions: dict[str, float] = field(default_factory=dict)
    """How far each cell that is being trained has come, from 0 to 1."""
    failed: set[str] = field(default_factory=set)
    operations: dict[str, float] = field(default_factory=dict)
    places: dict[Place, list[str]] = field(default_factory=dict)
    """The cells of one place: one a seed (and, under best-lr, a learning rate)."""

    def __post_init__(self) -> None:
        self.points = grid(self.config)
        for point in self.points:
            place = tuple(point.axes[name] for name in self.config.axes)
            self.places.setdefault(place, []).append(point.id)
        self.operations = {point.id: cost(point.cell).operations for point in self.points}

    def progress(self, cell: str, scores: Row, fraction: float) -> None:
        """Take in the scores of a cell that is being trained."""
        self.running[cell] = scores
        self.fractions[cell] = fraction

    def finish(self, row: Row) -> None:
        """Take in the row of a cell that is done."""
        cell = str(row["cell"])
        self.done[cell] = row
        self.running.pop(cell, None)
        self.fractions.pop(cell, None)

    def fail(self, cell: str) -> None:
        """Take in that the bucket of a cell came to an error."""
        self.failed.add(cell)
        self.running.pop(cell, None)
        self.fractions.pop(cell, None)

    @property
    def share_done(self) -> float:
        """The share of the study's operations that is behind us."""
        behind = sum(self.operations[cell] for cell in self.done)
        behind += sum(self.operations[cell] * part for cell, part in self.fractions.items())
        return behind / sum(self.operations.values())

    def labels(self) -> dict[str, int]:
        """Return how many finished cells carry each label, the most frequent first."""
        counts: dict[str, int] = {}
        for row in self.done.values():
            counts[str(row["label"])] = counts.get(str(row["label"]), 0) + 1
        return dict(sorted(counts.items(), key=lambda entry: -entry[1]))

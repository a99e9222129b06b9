"""What a report is made of: plain rows and words, read once from a store."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from initrate.report._under_way import UnderWay
from initrate.report._words import axis_words, spread_words, texts_of

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of the study's grid, its values in the order of the study file."""

    name: str
    column: str
    """The column of the cells table that holds it."""
    values: tuple[object, ...]

    @property
    def short(self) -> str:
        """Its name in short: "γ", "depth"."""
        return axis_words(self.name)[0]

    @property
    def full(self) -> str:
        """Its name in full: "initialization rate γ"."""
        return axis_words(self.name)[1]

    @property
    def texts(self) -> tuple[str, ...]:
        """Its values as short texts."""
        return texts_of(self.values)

    def setting(self, place: int) -> str:
        """Return one of its values with its name: "γ 0.8", with a space that does not break."""
        return f"{self.short}\u00a0{self.texts[place]}"


@dataclass(frozen=True, slots=True)
class Pair:
    """Anchors asked for though never seen together, and what their answers look like."""

    text: str
    """As in the tables: "4,3"."""
    split: str
    composed_shift: int | None = None
    """Prediction minus key of the composed answer, where that is one number."""
    mirrored_shift: int | None = None
    probe: bool = False


@dataclass(frozen=True, slots=True)
class SeedPairs:
    """Pairs of runs that differ in the seed alone."""

    n: int
    changed: int
    """Of these: how many carry two labels."""


@dataclass(frozen=True, slots=True)
class Source:
    """All that the page and the figures show, as plain Python; nothing here reaches back."""

    name: str
    description: str
    axes: tuple[Axis, ...]
    seeds_in_words: str
    seed_columns: tuple[str, ...]
    """Columns of the cells table that tell the seeds of one grid cell apart."""
    n_cells: int
    cells: Sequence[Row]
    """The finished runs."""
    lrs: tuple[float, ...] = ()
    """The learning rates of the protocol best-lr; empty under the protocol single."""
    pairs: tuple[Pair, ...] = ()
    curves: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    counts: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    shifts: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    tensors: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    timing: Sequence[Row] = ()
    baselines: Sequence[Row] = ()
    floors: Mapping[str, float] = field(default_factory=dict)
    facts: Sequence[tuple[str, str]] = ()
    """Short (name, words) pairs of the set-up, for the head of the page."""
    config_text: str = ""
    environment: Mapping[str, object] = field(default_factory=dict)
    execution: Mapping[str, object] = field(default_factory=dict)
    thresholds: Mapping[str, object] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    """What could not be read and the report does without, a sentence each."""
    crossed: Mapping[str, int] = field(default_factory=dict)
    """How many seeds of each kind are crossed; empty where one number is all seeds of a run."""
    seed_pairs: SeedPairs | None = None
    """How often another seed changes the label; None where no two runs differ in it alone."""
    under_way: UnderWay | None = None
    """A bucket that is begun and not done."""
    variant: str = ""
    """The variant of the task, for captions; of several tasks, all of them."""
    demonstration: bool = False
    """Made to show the regimes, never evidence for a claim: the page says so at its head."""
    changed: str = ""
    """What the study changes of the preset that it was made from, in one sentence."""
    preset: str = ""
    """The preset that the study was made from; empty for one of its own."""
    identity: str = ""
    version: str = ""
    built: datetime | None = None

    @property
    def title(self) -> str:
        """Its name; a preset that was changed is not called as if it were the preset."""
        return f"{self.name}, changed" if self.changed and self.name == self.preset else self.name

    @property
    def one_seed(self) -> str:
        """What one of the runs of a setting is called: a seed, but where seeds are crossed."""
        return "run" if self.crossed else "seed"

    def spread(self, found: Sequence[float]) -> str:
        """Return in words how far the numbers of one setting spread over its seeds."""
        n_runs = self.n_cells // math.prod(len(v) for v in self._points)
        return spread_words(found, self.seeds_in_words if self.crossed else "", n_runs)

    @property
    def _points(self) -> list[tuple[object, ...]]:
        return [axis.values for axis in self.axes] + [self.lrs or (None,)]

    @property
    def finished(self) -> bool:
        """True when every run of the study is there."""
        return len(self.cells) >= self.n_cells


def number(row: Row, column: str) -> float | None:
    """Return the number in a column, or None where the table has none.

    >>> number({"lr": 0.001}, "lr"), number({}, "lr")
    (0.001, None)
    """
    found = row.get(column)
    if isinstance(found, bool) or not isinstance(found, int | float) or found != found:
        return None
    return float(found)

"""What a benchmark found, and the same as plain data."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from initrate.bench._engines import OURS

Product = tuple[int, int, int]
"""A matrix product: rows, inner width, columns."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of all rounds, the least and the most."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of one value or more.

        >>> Spread.of([3.0, 1.0, 2.0])
        Spread(median=2.0, least=1.0, most=3.0)
        """
        return cls(statistics.median(values), min(values), max(values))

    def under(self, above: float) -> Spread:
        """Return the spread of `above` divided by each value.

        >>> Spread(2.0, 1.0, 4.0).under(4.0)
        Spread(median=2.0, least=1.0, most=4.0)
        """
        return Spread(above / self.median, above / self.most, above / self.least)

    def to_dict(self, name: str) -> dict[str, float]:
        """Return the median under a name, and the others beside it."""
        return {name: self.median, f"{name}_least": self.least, f"{name}_most": self.most}


@dataclass(frozen=True, slots=True)
class Row:
    """What one engine reached at one size. A model-step is one step of one model."""

    size: str
    engine: str
    n_models: int
    rounds: int
    step_seconds: Spread
    """Of a model-step."""
    utilisation: Spread
    """Plain operations over the time of a model-step times the run's median peak: above 1 where
    operations are saved."""
    ceiling: float
    """The most that this could be at the peak: plain operations over those that remain."""
    relative_time: Spread | None
    """Time over that of initrate in the same round; None where initrate was not measured."""
    first_step_seconds: float
    """From drawing the weights to the end of the first step of all models, compilation included."""
    peak_memory: int
    """Bytes that the engine's process held at most, its libraries included."""

    def to_dict(self) -> dict[str, object]:
        """Return the row as plain data."""
        return {
            "size": self.size,
            "engine": self.engine,
            **self.utilisation.to_dict("utilisation"),
            "ceiling": self.ceiling,
            **self.step_seconds.under(1.0).to_dict("steps_per_second"),
            "peak_memory": self.peak_memory,
            "first_step_seconds": self.first_step_seconds,
            **({} if self.relative_time is None else self.relative_time.to_dict("relative_time")),
            "n_models": self.n_models,
            "rounds": self.rounds,
        }


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An engine that could not be measured, at one size or (None) at all."""

    engine: str
    reason: str
    size: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Return engine, reason and, where it is about one, the size."""
        found: dict[str, object] = {"engine": self.engine, "reason": self.reason}
        return found if self.size is None else {**found, "size": self.size}


@dataclass(frozen=True, slots=True)
class Peak:
    """The matrix product measured beside the engines of one size."""

    size: str
    product: Product
    gflops: tuple[float, ...]
    """1e9 operations a second: before, between and after the turns of the engines, in order."""
    plain_operations: float
    """Of a model-step, the plain way."""

    def to_dict(self) -> dict[str, object]:
        """Return the peak as plain data."""
        return {
            "size": self.size,
            "product": list(self.product),
            "gflops": list(self.gflops),
            **Spread.of(self.gflops).to_dict("peak_gflops"),
            "plain_operations": self.plain_operations,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that came out of one run of the benchmark."""

    rows: tuple[Row, ...]
    left_out: tuple[LeftOut, ...]
    peaks: tuple[Peak, ...]
    environment: Mapping[str, object]

    def row(self, size: str, engine: str) -> Row | None:
        """Return the row of an engine at a size, or None where it was left out."""
        return next((r for r in self.rows if (r.size, r.engine) == (size, engine)), None)

    def best_peer(self, size: str) -> Row | None:
        """Return the row of the fastest engine beside initrate, or None where there is none."""
        peers = [row for row in self.rows if row.size == size and row.engine != OURS]
        return min(peers, key=lambda row: row.step_seconds.median, default=None)

    def to_dict(self) -> dict[str, object]:
        """Return all of it as plain data, ready for JSON."""
        return {
            "schema": 1,
            "rows": [row.to_dict() for row in self.rows],
            "left_out": [each.to_dict() for each in self.left_out],
            "gemm": [peak.to_dict() for peak in self.peaks],
            "environment": dict(self.environment),
        }

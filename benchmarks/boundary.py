"""The boundary search on simulated diagrams whose crossings are known, beside the full grid.

python -m benchmarks.boundary

A diagram has 13 values of gamma (0.4 to 1.0 in steps of 0.05), 5 depths and 5 seeds: 325 cells,
whose labels are drawn once, so that the search and the full grid see the same ones. At each depth
the probability of the label goes from 10 % to 90 % over 0.02 to 0.1 in gamma (evenly drawn). Of the
diagrams, four in ten rise once at each depth, one in ten falls once, three in ten have a band (the
label only between two gammas, 0.12 to 0.3 apart), one in ten a gap (the label but between two
gammas), and in one in ten every depth is one of these by itself. Depth moves the crossings by up to
0.1 and more by chance; one depth in eight has no crossing at all. Crossings lie between 0.45 and
0.95: at the very rim of the range, the full grid cannot tell them either. With a lapse, this share
of all labels is another one, far from any crossing too, as it is in real diagrams.

A depth is right if it has the right number of crossings, each inside its interval widened by half a
resolution, and its estimate within one resolution of it; a diagram is right if all its depths are.
The full grid takes the label of most seeds in each cell; its crossings lie between two values whose
labels differ, its intervals are these two values.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
import tyro
from scipy.special import expit

from initrate.boundary import UNTRIED, Aim, Batch, Crossing, Shape, find

SHAPE = Shape(rows=5, values=13, seeds=5)
LOW, RESOLUTION = 0.4, 0.05
_FINE = np.arange(6001) * (SHAPE.values - 1) / 6000
_KINDS = ("rise", "fall", "band", "gap")


@dataclass(frozen=True, slots=True)
class Diagram:
    """A simulated diagram: the true crossings by depth, in resolutions, and all its labels."""

    crossings: tuple[tuple[float, ...], ...]
    labels: np.ndarray


@dataclass(frozen=True, slots=True)
class Result:
    """What was right, and what it took."""

    rows: tuple[bool, ...]
    n_cells: int
    seconds: float = 0.0
    """What all choices took."""

    @property
    def right(self) -> bool:
        return all(self.rows)


def simulate(rng: np.random.Generator, lapse: float) -> Diagram:
    """Return a diagram drawn at random."""
    kind = rng.choice([*_KINDS, "any"], p=[0.4, 0.1, 0.3, 0.1, 0.1])
    length = rng.uniform(0.12, 0.3)
    center, slope = rng.uniform(0.55, 0.85), rng.uniform(-0.025, 0.025)
    crossings: list[tuple[float, ...]] = []
    labels = np.empty(SHAPE, dtype=np.int8)
    for row in range(SHAPE.rows):
        shape = rng.choice(_KINDS) if kind == "any" else str(kind)
        place = center + slope * (row - 2) + rng.normal(0, 0.02)
        width = rng.uniform(0.02, 0.1)
        curve = _curve(str(shape), place, length, width, none=rng.random() < 1 / 8)
        true = _FINE[np.flatnonzero(np.diff(curve(LOW + RESOLUTION * _FINE) > 0.5))]
        crossings.append(tuple(float(found) for found in true))
        share = curve(LOW + RESOLUTION * np.arange(SHAPE.values))
        share = lapse + (1 - 2 * lapse) * share
        labels[row] = rng.random((SHAPE.values, SHAPE.seeds)) < share[:, None]
    return Diagram(tuple(crossings), labels)


def _curve(shape: str, place: float, length: float, width: float, *, none: bool):
    """The probability of the label as a function of gamma."""
    slope = 2 * np.log(9) / width
    falls = shape in ("fall", "gap")
    if none:
        return lambda gamma: np.full(np.shape(gamma), float(falls))

    def curve(gamma: np.ndarray) -> np.ndarray:
        if shape in ("rise", "fall"):
            share = expit(slope * (gamma - np.clip(place, 0.45, 0.95)))
        else:
            middle = np.clip(place, 0.45 + length / 2, 0.95 - length / 2)
            share = expit(slope * (gamma - middle + length / 2))
            share = share * expit(slope * (middle + length / 2 - gamma))
        return 1 - share if falls else share

    return curve


def search(diagram: Diagram, aim: Aim, width: int) -> Result:
    """Return what the search makes of a diagram."""

    def ask(batch: Batch) -> np.ndarray:
        return diagram.labels[batch.row][np.ix_(batch.values, batch.seeds)]

    began = time.perf_counter()
    found = find(SHAPE, ask, aim=aim, width=width)
    seconds = time.perf_counter() - began
    pairs = zip(found.readings, diagram.crossings, strict=True)
    rows = tuple(_right(reading.crossings, true) for reading, true in pairs)
    return Result(rows, int((found.labels != UNTRIED).sum()), seconds)


def full_grid(diagram: Diagram) -> Result:
    """Return what all cells make of a diagram."""
    rows: list[bool] = []
    for row, true in enumerate(diagram.crossings):
        high = diagram.labels[row].sum(axis=1) * 2 > SHAPE.seeds
        places = np.flatnonzero(np.diff(high)).tolist()
        told = [Crossing(k + 0.5, k, k + 1, bool(high[k + 1])) for k in places]
        rows.append(_right(told, true))
    return Result(tuple(rows), diagram.labels.size)


def _right(told: Sequence[Crossing], true: Sequence[float]) -> bool:
    return len(told) == len(true) and all(
        found.low - 0.5 <= place <= found.high + 0.5 and abs(found.estimate - place) <= 1
        for found, place in zip(told, true, strict=True)
    )


def main(
    diagrams: int = 200,
    confidence: tuple[float, ...] = (0.8, 0.9),
    lapse: tuple[float, ...] = (0.0, 0.03),
    missed: float = Aim().missed,
    width: int = 8,
    seed: int = 1,
    processes: int = os.cpu_count() or 1,
) -> int:
    """Print how often search and full grid are right, and how many cells they take.

    Args:
        diagrams: How many are simulated.
        confidence: Of the intervals; a row each.
        lapse: Share of labels that are another one; a block of rows each.
        missed: Most probability of other crossings in a row that counts as resolved.
        width: Most cells of a batch.
        seed: Of the diagrams.
        processes: How many diagrams are searched at a time.
    """
    print("lapse  what              diagrams right  depths right  cells  of the grid  s a diagram")
    for share in lapse:
        rng = np.random.default_rng(seed)
        drawn = [simulate(rng, share) for _ in range(diagrams)]
        _print(share, "full grid", [full_grid(diagram) for diagram in drawn])
        for level in confidence:
            with ProcessPoolExecutor(processes) as pool:
                aim = [Aim(level, missed)] * diagrams
                results = list(pool.map(search, drawn, aim, [width] * diagrams))
            _print(share, f"search at {level:g}", results)
    return 0


def _print(lapse: float, what: str, results: Sequence[Result]) -> None:
    right = np.mean([result.right for result in results])
    rows = np.mean([row for result in results for row in result.rows])
    n_cells = np.mean([result.n_cells for result in results])
    seconds = np.mean([result.seconds for result in results])
    grid = SHAPE.rows * SHAPE.values * SHAPE.seeds
    print(
        f"{lapse:<5g}  {what:<16}  {right:>14.1%}  {rows:>12.1%}  {n_cells:>5.0f}  "
        f"{n_cells / grid:>11.1%}  {seconds:>11.2f}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(tyro.cli(main))

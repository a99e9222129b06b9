"""The maps: for each answer one value a cell, its seeds, its labels, and whether it is hatched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from initrate.report._colours import LABELS, label_style
from initrate.report._grid import Grid, Group, by_seed, chosen_by_training_loss
from initrate.report._source import Row, Source, number
from initrate.report._words import count_of, label_words, share

_COMMUTES = "commutes"
SEEN_THRESHOLD = 0.9
"""Cells whose seen pairs fall below it are hatched, as in Fig. 2 of arXiv 2405.05409."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One seed's letter in the label map."""

    label: str
    letter: str
    number: int = 1
    """How many runs it stands for."""


@dataclass(frozen=True, slots=True)
class MapCell:
    """One cell of one map."""

    group: Group
    shown: float | None
    """The value printed; None where no run has it."""
    seeds: tuple[float, ...] = ()
    """The values behind it, one a seed."""
    marks: tuple[Mark, ...] = ()
    hatched: bool = False
    spoken: str = ""
    """The cell in one sentence, for screen readers and as its title."""


@dataclass(frozen=True, slots=True)
class Map:
    """One map of the diagram; `tables[facet][row][column]`."""

    key: str
    title: str
    sentence: str
    kind: str
    """`share`: a value and a colour; `label`: letters."""
    tables: tuple[tuple[tuple[MapCell, ...], ...], ...]

    @property
    def cells(self) -> tuple[MapCell, ...]:
        """All cells in reading order."""
        return tuple(cell for table in self.tables for row in table for cell in row)


@dataclass(frozen=True, slots=True)
class _Measure:
    key: str
    title: str
    column: str
    what: str
    most: bool = False
    """Under best-lr: the maximum over learning rates, for this answer alone."""


def make_maps(source: Source, grid: Grid) -> tuple[Map, ...]:
    """Return all maps the study has data for: a map without any value is left out."""
    maps = []
    for measure in _measures(source):
        cells = {g.index: _share_cell(source, g, measure) for g in grid.groups}
        wanted = measure.key in ("inferential", "seen")
        if wanted or any(cell.shown is not None for cell in cells.values()):
            sentence = f"{measure.what} {_statistic(source, measure)}"
            maps.append(Map(measure.key, measure.title, sentence, "share", _tables(grid, cells)))
    labels = {g.index: _label_cell(source, g) for g in grid.groups}
    where = " at the learning rate chosen by training loss" if source.lrs else ""
    sentence = f"What each run learned, one letter a {source.one_seed}{where}."
    return (*maps, Map("labels", "Labels", sentence, "label", _tables(grid, labels)))


def runs_shown(source: Source, group: Group) -> list[int]:
    """Return one run a seed: the only one, or under best-lr the one chosen by training loss."""
    return chosen_by_training_loss(source, group) if source.lrs else list(group.members)


def label_counts(source: Source, members: Sequence[int]) -> dict[str, int]:
    """Return how many of the runs carry each label, the best understood label first."""
    found = Counter(str(source.cells[member]["label"]) for member in members)
    known = [name for name in LABELS if name in found]
    return {name: found[name] for name in [*known, *sorted(set(found) - set(known))]}


def is_fitted(row: Row) -> bool:
    """Return whether a run learned its seen pairs: only then it has an answer to judge."""
    return row.get("fit") == "fitted"


def maxima(source: Source, group: Group, column: str) -> list[float]:
    """Return, for each seed, the maximum of a column over the learning rates."""
    best: list[float] = []
    for members in by_seed(source, group):
        found = [number(source.cells[member], column) for member in members]
        known = [share for share in found if share is not None]
        best += [max(known)] if known else []
    return best


def pair_words(source: Source) -> str:
    """Return the pair that maps and labels are about: "the unseen pair (4, 3)"."""
    primary = next((p.text for p in source.pairs if not p.probe), "")
    return f"the unseen pair ({primary.replace(',', ', ')})" if primary else "the unseen pair"


def probe_words(source: Source) -> str:
    """Return the pairs of the probe: "(1, 2) and (2, 1)"; empty where the task has none."""
    return " and ".join(f"({p.text.replace(',', ', ')})" for p in source.pairs if p.probe)


def _measures(source: Source) -> list[_Measure]:
    pair = pair_words(source)
    inferential = f"Share of answers to {pair} that are the composed one."
    symmetric = f"Share of answers to {pair} that are the mirrored one."
    tail = " at lr by loss" if source.lrs else ""
    measures = [
        _Measure(
            f"inferential{tail and '-by-loss'}",
            f"Composed (inferential){tail}",
            "inferential_accuracy",
            inferential,
        ),
        _Measure(
            f"symmetric{tail and '-by-loss'}",
            f"Mirrored (symmetric){tail}",
            "symmetric_accuracy",
            symmetric,
        ),
        _Measure(
            "seen",
            f"Seen pairs{tail}",
            "seen_accuracy",
            "Share of right answers to pairs seen in training, with keys held out from it.",
        ),
        _Measure(
            "probe",
            f"Probe{tail}",
            "probe_accuracy",
            f"Share of composed answers to the probe {probe_words(source) or '–'}, "
            "unseen in both orders.",
        ),
        _Measure(
            _COMMUTES,
            f"Commutes{tail}",
            _COMMUTES,
            "Share of questions to which both orders of the unseen pair get one answer. Runs that "
            "are not fitted are left out: hatched cells without a number have no other.",
        ),
    ]
    if source.lrs:
        measures[:0] = [
            _Measure(
                "inferential",
                "Composed (inferential), maximum",
                "inferential_accuracy",
                inferential,
                most=True,
            ),
            _Measure(
                "symmetric",
                "Mirrored (symmetric), maximum",
                "symmetric_accuracy",
                symmetric,
                most=True,
            ),
        ]
    return measures


def _statistic(source: Source, measure: _Measure) -> str:
    seeds = source.seeds_in_words if source.finished else "the seeds finished so far"
    rates = count_of(len(source.lrs), "learning rate")
    if measure.most:
        return (
            f"A maximum: the best of {rates} for this answer alone and "
            f"each seed alone, then the mean of {seeds}. Read it beside the map at the learning "
            "rate chosen by training loss."
        )
    if source.lrs:
        return (
            f"Of {rates} the one with the lowest training loss, each "
            f"seed alone; the median of {seeds}."
        )
    one = f"One {source.one_seed} a cell."
    return one if source.seeds_in_words == "1 seed" else f"The median of {seeds}."


def _share_cell(source: Source, group: Group, measure: _Measure) -> MapCell:
    runs = runs_shown(source, group)
    if measure.most:
        seeds = maxima(source, group, measure.column)
        shown = fmean(seeds) if seeds else None
    else:
        told = [run for run in runs if measure.key != _COMMUTES or is_fitted(source.cells[run])]
        found = [number(source.cells[run], measure.column) for run in told]
        seeds = [value for value in found if value is not None]
        shown = median(seeds) if seeds else None
    hatched = _hatched(source, runs)
    if measure.key == _COMMUTES and not seeds:
        hatched = any(number(source.cells[run], _COMMUTES) is not None for run in runs)
    return MapCell(
        group=group,
        shown=shown,
        seeds=tuple(sorted(seeds)),
        hatched=hatched,
        spoken=_spoken(source, group, measure.title, shown, seeds, hatched),
    )


def _label_cell(source: Source, group: Group) -> MapCell:
    runs = runs_shown(source, group)
    counts = label_counts(source, runs)
    if len(runs) <= 6:
        marks = tuple(
            Mark(name, label_style(name).letter) for name, n in counts.items() for _ in range(n)
        )
    else:
        marks = tuple(Mark(name, label_style(name).letter, n) for name, n in counts.items())
    spoken = ", ".join(f"{n} {label_words(name)}" for name, n in counts.items())
    return MapCell(
        group=group,
        shown=None,
        marks=marks,
        hatched=_hatched(source, runs),
        spoken=f"{group.words}: {spoken or 'no run finished yet'}",
    )


def _hatched(source: Source, runs: Sequence[int]) -> bool:
    found = [number(source.cells[run], "seen_accuracy") for run in runs]
    seen = [value for value in found if value is not None]
    return bool(seen) and median(seen) < SEEN_THRESHOLD


def _spoken(
    source: Source,
    group: Group,
    title: str,
    shown: float | None,
    seeds: Sequence[float],
    hatched: bool,
) -> str:
    if not group.members:
        return f"{group.words}: no run finished yet"
    if shown is None:
        return f"{group.words}: {'not fitted' if hatched else f'no {title.lower()} value'}"
    spread = f", {source.spread(seeds)}"
    unfit = f", seen pairs below {SEEN_THRESHOLD:.2f}" if hatched else ""
    return f"{group.words}: {title.lower()} {share(shown)}{spread}{unfit}"


def _tables(grid: Grid, cells: dict[int, MapCell]) -> tuple[tuple[tuple[MapCell, ...], ...], ...]:
    return tuple(
        tuple(tuple(cells[group.index] for group in row) for row in facet.groups)
        for facet in grid.facets
    )

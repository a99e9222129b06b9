"""The head of the page in words: what was found, where, and how far the seeds agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from initrate.report._grid import Grid, Group
from initrate.report._maps import label_counts, pair_words, runs_shown
from initrate.report._source import Axis, Source, number
from initrate.report._words import (
    count_of,
    enumerate_words,
    label_words,
    share,
)

UNFIT = ("diverged", "not_trained", "data_memorized")
"""Labels of runs that did not learn the seen pairs: they have no answer to judge."""


@dataclass(frozen=True, slots=True)
class Headline:
    """The title, the sentences under it, and the cautions."""

    title: str
    sentences: tuple[str, ...]
    cautions: tuple[str, ...]


def headline(source: Source, grid: Grid) -> Headline:
    """Return what the study found, in words that follow from the stored labels alone."""
    runs = [run for group in grid.groups for run in runs_shown(source, group)]
    counts = label_counts(source, runs)
    sentences = [_counted(source, counts), *_borders(source, grid), _spread(source, grid)]
    return Headline(
        title=_title(counts, len(runs)),
        sentences=tuple(sentence for sentence in sentences if sentence),
        cautions=_cautions(source),
    )


def _title(counts: dict[str, int], n_runs: int) -> str:
    if not n_runs:
        return "No run has finished yet"
    unfit = sum(counts.get(label, 0) for label in UNFIT)
    if unfit == n_runs:
        what = "Not fitted" if counts.get("data_memorized") else "Not trained"
        return f"{what}: {unfit} of {count_of(n_runs, 'run')}; composing cannot be judged"
    # A run that carries one exception over to its mirror image composes everywhere else.
    excepted = counts.get("composed_with_mirrored_exception", 0)
    composed = counts.get("composed", 0) + excepted
    mirrored = sum(counts.get(label, 0) for label in ("mirrored", "mirrored_lookup"))
    carrying = "" if not excepted else ", but for an exception carried over to its mirror image"
    if 0 < excepted < composed:
        carrying = f", {excepted} of them but for an exception carried over to its mirror image"
    if n_runs == 1:
        return f"The one run composed{carrying}" if composed else "The one run did not compose"
    if composed == n_runs:
        return f"All {n_runs} runs composed{carrying}"
    rest = f"; {mirrored} mirrored" if mirrored else ""
    return f"{composed or 'None'} of {count_of(n_runs, 'run')} composed{carrying}{rest}"


def _counted(source: Source, counts: dict[str, int]) -> str:
    where = ", at the learning rate chosen by training loss" if source.lrs else ""
    parts = [f"{n} {label_words(label)}" for label, n in counts.items()]
    if len(parts) > 1:
        return f"By label{where}: {enumerate_words(parts)}."
    return f"Every run is labelled {label_words(next(iter(counts)))}{where}." if parts else ""


def _borders(source: Source, grid: Grid) -> list[str]:
    """Where the median composed share is above one half: on the unseen pair, and on the probe."""
    if not any(number(row, "probe_accuracy") is not None for row in source.cells):
        return [_border(source, grid, "inferential_accuracy", "The")]
    pair = pair_words(source)
    return [
        _border(source, grid, "inferential_accuracy", f"On {pair} the"),
        _border(source, grid, "probe_accuracy", "On the probe the"),
    ]


def _border(source: Source, grid: Grid, column: str, start: str) -> str:
    """Where along the first axis the median of a share is above one half."""
    lines = [row for facet in grid.facets for row in facet.groups]
    if not source.cells:
        return ""
    head = f"{start} median composed share is above one half"
    if grid.columns is None or len(grid.columns.values) < 2:
        found = [_middle(_shares(source, group, column)) for row in lines for group in row]
        shares = [share(entry) for entry in found]
        return f"{start} median composed share is {enumerate_words(shares)}."
    above = [[(_middle(_shares(source, g, column)) or 0) > 0.5 for g in row] for row in lines]
    if not any(map(any, above)):
        return f"{head} nowhere."
    if len(lines) > 8 or len(grid.facets) > 1:
        n_above, n_cells = sum(map(sum, above)), sum(map(len, above))
        return f"{head} in {n_above} of {count_of(n_cells, 'cell')}."
    places: dict[str, list[str]] = {}
    for row, passes in zip(lines, above, strict=True):
        if any(passes):
            rest = ", ".join(row[0].settings[1:])
            places.setdefault(_stretches(grid.columns, passes), []).append(rest)
    if len(places) == 1 and all(map(any, above)):
        return f"{head} at {next(iter(places))}{' in every row' if len(lines) > 1 else ''}."
    where = [f"at {place} ({enumerate_words(rows)})" for place, rows in places.items()]
    never = sum(not any(passes) for passes in above)
    tail = f"; in {count_of(never, 'row')} nowhere" if never else ""
    return f"{head} {enumerate_words(where)}{tail}."


def _stretches(axis: Axis, passes: Sequence[bool]) -> str:
    """Return the values of an axis that pass, neighbours joined: "γ 0.4, 0.6 to 0.8"."""
    parts: list[str] = []
    for passing, run in groupby(enumerate(passes), key=lambda entry: entry[1]):
        ends = [axis.texts[place] for place, _ in run]
        if passing:
            parts.append(ends[0] if len(ends) == 1 else f"{ends[0]} to {ends[-1]}")
    return f"{axis.short}\u00a0{', '.join(parts)}"


def _spread(source: Source, grid: Grid) -> str:
    """How many cells of the map hold seeds of unlike labels, and where they differ most."""
    several = [g for g in grid.groups if len(runs_shown(source, g)) > 1]
    if not several:
        return "One seed a cell: how far seeds differ is not known." if source.cells else ""
    of = f" on {pair_words(source)}" if any(pair.probe for pair in source.pairs) else ""
    split = [g for g in several if len(label_counts(source, runs_shown(source, g))) > 1]
    ranges = [(max(found) - min(found), g) for g in several if (found := _shares(source, g))]
    head = (
        f"Seeds carry different labels in {len(split)} of {count_of(len(several), 'cell')}"
        if split
        else f"In all {count_of(len(several), 'cell')} the seeds carry one label"
    )
    if not ranges:
        return f"{head}."
    widest = max(ranges, key=lambda entry: entry[0])[1]
    low, *_, high = sorted(_shares(source, widest))
    return (
        f"{head}; their composed shares{of} lie furthest apart at {widest.words}: "
        f"{share(low)} to {share(high)}."
    )


def _cautions(source: Source) -> tuple[str, ...]:
    cautions = []
    if source.demonstration:
        cautions.append(
            "A demonstration at a small size, chosen because it shows the regimes: it is not "
            "evidence for a claim about larger models."
        )
    if not source.finished:
        cautions.append(
            f"The study is not finished: {len(source.cells)} of "
            f"{count_of(source.n_cells, 'run')} are in."
        )
    cautions += source.missing
    if source.lrs:
        cautions.append(
            f"Each cell trained at {len(source.lrs)} learning rates. Maps called a maximum take "
            "the best of them for each answer apart, so two maxima of one cell may come from "
            "different runs."
        )
    return tuple(cautions)


def _shares(source: Source, group: Group, column: str = "inferential_accuracy") -> list[float]:
    found = [number(source.cells[run], column) for run in runs_shown(source, group)]
    return [entry for entry in found if entry is not None]


def _middle(shares: list[float]) -> float | None:
    return median(shares) if shares else None

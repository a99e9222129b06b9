"""The head of the page in words: what was found, where, and how far the seeds agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from initrate.report._grid import Grid, Group
from initrate.report._maps import label_counts, runs_shown
from initrate.report._source import Axis, Source, number
from initrate.report._words import (
    count_of,
    enumerate_words,
    label_words,
    share,
)


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
    sentences = [_counted(source, counts), _borders(source, grid), _spread(source, grid)]
    return Headline(
        title=_title(counts, len(runs)),
        sentences=tuple(sentence for sentence in sentences if sentence),
        cautions=_cautions(source),
    )


def _title(counts: dict[str, int], n_runs: int) -> str:
    if not n_runs:
        return "No run has finished yet"
    composed = counts.get("composed", 0)
    excepted = counts.get("composed_with_mirrored_exception", 0)
    mirrored = sum(counts.get(label, 0) for label in ("mirrored", "mirrored_lookup"))
    if n_runs == 1:
        return "The one run composed" if composed else "The one run did not compose"
    if composed == n_runs:
        return f"All {n_runs} runs composed"
    head = f"{composed or 'None'} of {count_of(n_runs, 'run')} composed"
    if excepted:
        return f"{head}, {excepted} with a mirrored exception"
    return f"{head}, {mirrored} mirrored" if mirrored else head


def _counted(source: Source, counts: dict[str, int]) -> str:
    where = ", at the learning rate chosen by training loss" if source.lrs else ""
    parts = [f"{n} {label_words(label)}" for label, n in counts.items()]
    if len(parts) > 1:
        return f"By label{where}: {enumerate_words(parts)}."
    return f"Every run is labelled {label_words(next(iter(counts)))}{where}." if parts else ""


def _borders(source: Source, grid: Grid) -> str:
    """Where along the first axis the median composed share is above one half."""
    lines = [row for facet in grid.facets for row in facet.groups]
    if grid.columns is None or len(grid.columns.values) < 2 or not source.cells:
        return ""
    above = [[(_middle(_shares(source, group)) or 0) > 0.5 for group in row] for row in lines]
    head = "The median composed share is above one half"
    if not any(map(any, above)):
        return "The median composed share is above one half nowhere."
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
        f"{head}; their composed shares lie furthest apart at {widest.words}: "
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
    if source.lrs:
        cautions.append(
            f"Each cell trained at {len(source.lrs)} learning rates. Maps called a maximum take "
            "the best of them for each answer apart, so two maxima of one cell may come from "
            "different runs."
        )
    return tuple(cautions)


def _shares(source: Source, group: Group) -> list[float]:
    found = [number(source.cells[run], "inferential_accuracy") for run in runs_shown(source, group)]
    return [entry for entry in found if entry is not None]


def _middle(shares: list[float]) -> float | None:
    return median(shares) if shares else None

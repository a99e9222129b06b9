"""The head of the page in words: what was found, where, and how far the seeds agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from initrate.report._grid import Grid, Group
from initrate.report._maps import label_counts, pair_words, runs_shown
from initrate.report._source import Axis, Source, number
from initrate.report._words import (
    all_words,
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
    sentences = [_counted(source, counts)]
    if _n_unfit(counts) < len(runs):
        sentences += _borders(source, grid)
    sentences.append(_spread(source, grid))
    return Headline(
        title=_title(source, counts, len(runs)),
        sentences=tuple(sentence for sentence in sentences if sentence),
        cautions=_cautions(source),
    )


def _n_unfit(counts: Mapping[str, int]) -> int:
    return sum(counts.get(label, 0) for label in UNFIT)


def _title(source: Source, counts: Mapping[str, int], n_runs: int) -> str:
    if not source.cells:
        return "No run has finished yet"
    verdict = _verdict(counts, n_runs) if n_runs else "none can be judged yet"
    if source.finished:
        return verdict
    head = f"{len(source.cells):,} of {count_of(source.n_cells, 'run')} finished"
    return f"{head}: {verdict[0].lower()}{verdict[1:]}"


def _verdict(counts: Mapping[str, int], n_runs: int) -> str:
    """What the fitted runs say; of runs that are not fitted, composing cannot be judged."""
    unfit = _n_unfit(counts)
    if unfit == n_runs:
        what = "Not fitted" if counts.get("data_memorized") else "Not trained"
        return f"{what}: {unfit} of {count_of(n_runs, 'run')}; composing cannot be judged"
    fitted = n_runs - unfit
    kind = "fitted run" if unfit else "run"
    # A run that carries one exception over to its mirror image composes everywhere else.
    excepted = counts.get("composed_with_mirrored_exception", 0)
    composed = counts.get("composed", 0) + excepted
    mirrored = sum(counts.get(label, 0) for label in ("mirrored", "mirrored_lookup"))
    carrying = "" if not excepted else ", but for an exception carried over to its mirror image"
    if 0 < excepted < composed:
        carrying = f", {excepted} of them but for an exception carried over to its mirror image"
    rest = f"; {mirrored} mirrored" if mirrored and fitted > 1 else ""
    rest += f"; {unfit} did not fit" if unfit else ""
    if fitted == 1:
        what = f"composed{carrying}" if composed else "did not compose"
        return f"The one {kind} {what}{rest}"
    if composed == fitted:
        return f"{all_words(fitted, kind)} composed{carrying}{rest}"
    return f"{composed or 'None'} of {count_of(fitted, kind)} composed{carrying}{rest}"


def _counted(source: Source, counts: Mapping[str, int]) -> str:
    where = ", at the learning rate chosen by training loss" if source.lrs else ""
    parts = [f"{n} {label_words(label)}" for label, n in counts.items()]
    if len(parts) > 1:
        return f"By label{where}: {enumerate_words(parts)}."
    only = next(iter(counts), "")
    # The title says these two in the same words.
    if only in ("", "composed", "not_trained") and not where:
        return ""
    if sum(counts.values()) == 1:
        return f"The run is labelled {label_words(only)}{where}."
    return f"Every run is labelled {label_words(only)}{where}." if only else ""


def _borders(source: Source, grid: Grid) -> list[str]:
    """Where the median composed share is above one half: on the unseen pair, and on the probe."""
    columns = {"inferential_accuracy": "The"}
    if any(number(row, "probe_accuracy") is not None for row in source.cells):
        columns = {
            "inferential_accuracy": f"On {pair_words(source)} the",
            "probe_accuracy": "On the probe the",
        }
    if len(grid.groups) == 1:
        return [_one_share(source, grid.groups[0], *column) for column in columns.items()]
    medians = [_middle(_shares(source, g, column)) or 0 for g in grid.groups for column in columns]
    if max(medians) > 0.5:
        return [_border(source, grid, column, start) for column, start in columns.items()]
    runs = [number(row, column) or 0 for row in source.cells for column in columns]
    # Where no run at all is above it, there is nothing to say.
    return ["No cell has a median composed share above one half."] if max(runs) > 0.5 else []


def _one_share(source: Source, group: Group, column: str, start: str) -> str:
    shares = _shares(source, group, column)
    if not shares:
        return ""
    median_of = "median " if len(shares) > 1 else ""
    return f"{start} {median_of}composed share is {share(median(shares))}."


def _border(source: Source, grid: Grid, column: str, start: str) -> str:
    """Where along the first axis the median of a share is above one half."""
    lines = [row for facet in grid.facets for row in facet.groups]
    assert grid.columns is not None
    head = f"{start} median composed share is above one half"
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
        so_far = "" if source.finished else " so far"
        head = f"One {source.one_seed} a cell{so_far}: how far seeds differ is not known."
        return head if source.cells else ""
    counts = [label_counts(source, runs_shown(source, g)) for g in several]
    split = sum(len(found) > 1 for found in counts)
    labels = {label for found in counts for label in found}
    apart = _apart(source, several) if labels - set(UNFIT) else ""
    seeds = f"{source.one_seed}s"
    # One label everywhere is told already.
    told = not split and len(labels) == 1
    if len(several) == 1:
        where = f" at {several[0].words}" if len(grid.groups) > 1 else ""
        unlike = f"{len(labels)} different labels" if split else "one label"
        head = "" if told else f"The {sum(counts[0].values())} {seeds}{where} carry {unlike}"
    elif split:
        n_cells = count_of(len(several), "cell")
        head = f"{seeds.capitalize()} carry different labels in {split} of {n_cells}"
    else:
        cells = all_words(len(several), "cell").lower()
        head = "" if told else f"In {cells} the {seeds} carry one label"
    start = "their" if head else f"The {seeds}'"
    parts = [head, f"{start} composed shares {apart}" if apart else ""]
    sentence = "; ".join(part for part in parts if part)
    return f"{sentence}." if sentence else ""


def _apart(source: Source, several: Sequence[Group]) -> str:
    """Where composed shares lie furthest apart; nowhere where they are equal as far as shown."""
    ranges = [(max(found) - min(found), g) for g in several if (found := _shares(source, g))]
    if not ranges:
        return ""
    widest = max(ranges, key=lambda entry: entry[0])[1]
    low, *_, high = sorted(_shares(source, widest))
    if share(low) == share(high):
        return ""
    on = f"on {pair_words(source)} " if any(pair.probe for pair in source.pairs) else ""
    ends = f"{share(low)} to {share(high)}"
    if len(several) == 1:
        return f"{on}lie from {ends}"
    return f"{on}lie furthest apart at {widest.words}: {ends}"


def _cautions(source: Source) -> tuple[str, ...]:
    cautions = []
    if source.demonstration:
        cautions.append(
            "A demonstration at a small size, chosen because it shows the regimes: it is not "
            "evidence for a claim about larger models."
        )
    if source.changed:
        cautions.append(source.changed)
    if not source.finished:
        cautions.append(_unfinished(source))
    cautions += source.missing
    if source.lrs:
        cautions.append(
            f"Each cell trained at {count_of(len(source.lrs), 'learning rate')}. Maps called a "
            "maximum take the best of them for each answer apart, so two maxima of one cell may "
            "come from different runs."
        )
    return tuple(cautions)


def _unfinished(source: Source) -> str:
    are = "is" if source.n_cells == 1 else "are"
    head = (
        f"The study is not finished: {len(source.cells)} of "
        f"{count_of(source.n_cells, 'run')} {are} in"
    )
    bucket = source.under_way
    if bucket is None:
        return f"{head}."
    runs = f" of {count_of(bucket.n_cells, 'run')}" if bucket.n_cells else ""
    if bucket.step is None or bucket.steps is None:
        return f"{head}; a bucket{runs} is under way."
    # Rounded as a run tells it, but that a part is neither none nor all.
    done = round(100 * (len(source.cells) + bucket.done) / source.n_cells)
    part = f"{min(done, 99)} %" if done else "less than 1 %"
    return (
        f"{head}; a bucket{runs} is at step {bucket.step:,} of {bucket.steps:,}, which makes "
        f"{part} of the study."
    )


def _shares(source: Source, group: Group, column: str = "inferential_accuracy") -> list[float]:
    found = [number(source.cells[run], column) for run in runs_shown(source, group)]
    return [entry for entry in found if entry is not None]


def _middle(shares: list[float]) -> float | None:
    return median(shares) if shares else None

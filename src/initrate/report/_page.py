"""The page: one offline file, its numbers as tables, its curves as data for a small script."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from statistics import median
from typing import Any

from initrate.report._colours import LEVELS, css, label_style, level
from initrate.report._figures import SavedFigure
from initrate.report._glossary import glossary
from initrate.report._grid import Grid, Group
from initrate.report._headline import headline
from initrate.report._maps import SEEN_THRESHOLD, Map, label_counts, runs_shown
from initrate.report._payload import payload, script_json
from initrate.report._source import Source, number
from initrate.report._words import count_of, duration, label_words, share, text_of

MOST_COLUMNS_BESIDE = 11
"""A wider map takes the whole width, and the chosen cell stands below it."""

_FLOORS = {
    "no_input": "nothing",
    "pair_only": "the pair of anchors",
    "key_only": "the key",
    "key_and_one_anchor": "the key and one anchor",
}


@dataclass(frozen=True, slots=True)
class Table:
    """A small table: names of columns, and rows of a name, what it is, and entries."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class _Shown:
    """A map with what its legend needs."""

    key: str
    title: str
    sentence: str
    kind: str
    tables: tuple[tuple[tuple[object, ...], ...], ...]
    any_hatched: bool


def render_page(
    source: Source, grid: Grid, maps: tuple[Map, ...], figures: Sequence[SavedFigure]
) -> str:
    """Return the whole page as HTML; every name from a file is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("initrate.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    from initrate.study import LABELS

    found = label_counts(source, range(len(source.cells)))
    return environment.get_template("page.html.jinja").render(
        source=source,
        grid=grid,
        head=headline(source, grid),
        maps=[_shown(one) for one in maps],
        wide=len(grid.facets[0].groups[0]) > MOST_COLUMNS_BESIDE,
        several_seeds=any(len(cell.seeds) > 1 for one in maps for cell in one.cells),
        labels_found={name: label_style(name) for name in found},
        levels=LEVELS,
        seen_threshold=SEEN_THRESHOLD,
        baselines=_baselines(source),
        citation=citation(source),
        floors=[(_FLOORS.get(k, k), f"{nats:.2f}") for k, nats in source.floors.items()],
        comparable=_comparable(source, grid),
        facts=source.facts,
        cost=_cost(source),
        trust=_trust(source),
        progress=_progress(source),
        thresholds=_pairs(source.thresholds),
        environment=_pairs(source.environment) + _pairs(source.execution),
        figures=[_figure(figure) for figure in figures],
        glossary=(*glossary(source), *_label_meanings(found, LABELS)),
        row_label_ch=_row_label_width(grid),
        row_height=_row_height(grid),
        count_of=count_of,
        level=level,
        share=share,
        # Our own files and JSON with every bracket escaped: safe as they are.
        css=Markup(_asset("style.css") + css()),
        script=Markup(_asset("charts.js") + _asset("page.js")),
        data=Markup(script_json(payload(source, grid))),
    )


def citation(source: Source) -> tuple[tuple[str, str], ...]:
    """Return what to name when a result of this study is used, as (name, words) pairs."""
    trained_by = source.environment.get("initrate") or source.version
    where = f", study {source.identity}" if source.identity else ""
    variant = f", {source.variant}" if source.variant else ""
    return (
        (
            "this study",
            f"initrate {trained_by}{where}{variant}, {source.seeds_in_words}, "
            f"{count_of(len(source.cells), 'run')}.",
        ),
        (
            "the paper",
            "Zhang et al., Initialization is Critical to Whether Transformers Fit Composite "
            "Functions by Reasoning or Memorizing, NeurIPS 2024, arXiv 2405.05409.",
        ),
    )


def _label_meanings(found: Mapping[str, int], meanings: Mapping[Any, str]) -> list[tuple[str, str]]:
    return [
        (label_words(name), f"{meanings[name][0].upper()}{meanings[name][1:]}.")
        for name in found
        if name in meanings
    ]


def _row_label_width(grid: Grid) -> int:
    """Return how many characters the names of the map's rows take; a long axis name is wrapped."""
    if grid.rows is None:
        return 0
    return max(map(len, [*grid.rows.texts, *grid.rows.short.split()]))


def _row_height(grid: Grid) -> str:
    """Return how high the cells are: a map of many rows should still fit on a screen."""
    n_rows = len(grid.facets[0].groups)
    n_columns = len(grid.facets[0].groups[0])
    if n_rows <= 2 and n_columns <= 4 and len(grid.facets) == 1:
        return "few"
    return "low" if n_rows > 8 else "middle" if n_rows > 4 or len(grid.facets) > 1 else "high"


def _asset(name: str) -> str:
    return resources.files("initrate.report").joinpath("templates", name).read_text("utf-8")


def _shown(one: Map) -> _Shown:
    hatched = any(cell.hatched for cell in one.cells)
    return _Shown(one.key, one.title, one.sentence, one.kind, one.tables, hatched)


def _figure(figure: SavedFigure) -> dict[str, str]:
    data = base64.b64encode(figure.svg).decode("ascii")
    return {
        "name": figure.name,
        "title": figure.title,
        "data": f"data:image/svg+xml;base64,{data}",
    }


def _baselines(source: Source) -> Table | None:
    """The shares of each baseline; a column that no baseline has is left out."""
    names = {"composed": "composed", "mirrored": "mirrored", "seen_accuracy": "seen pairs"}
    kept = [c for c in names if any(number(row, c) is not None for row in source.baselines)]
    rows = tuple(
        (str(row["baseline"]), str(row["about"]), tuple(share(number(row, c)) for c in kept))
        for row in source.baselines
    )
    return Table(tuple(names[c] for c in kept), rows) if rows else None


def _comparable(source: Source, grid: Grid) -> Table:
    """The numbers that carry over to other widths, norms and schedules, a row a cell of the map."""
    roles = _roles(source)
    columns = (
        *(f"σ√d {role.replace('_', ' ')}" for role in roles),
        "block-to-skip",
        "Σ lr",
        "Σ lr × decay",
    )
    rows = []
    for group in grid.groups:
        if not group.members:
            continue
        entries = [_middle(_sizes(source, group, role)) for role in roles]
        for column in ("block_to_skip", "sum_lr", "sum_lr_weight_decay"):
            found = [number(source.cells[run], column) for run in runs_shown(source, group)]
            entries.append(_middle([entry for entry in found if entry is not None]))
        rows.append((group.words, "", tuple(entries)))
    return Table(columns, tuple(rows))


def _roles(source: Source) -> list[str]:
    """The roles of matrices that the stored tensors have, in their order."""
    found = dict.fromkeys(
        str(row.get("role"))
        for rows in source.tensors.values()
        for row in rows
        if number(row, "sigma_sqrt_d") is not None
    )
    wanted = ("token_embedding", "query", "value", "attention_output", "mlp_in", "mlp_out")
    return [role for role in wanted if role in found]


def _sizes(source: Source, group: Group, role: str) -> list[float]:
    found = [
        number(row, "sigma_sqrt_d")
        for run in runs_shown(source, group)
        for row in source.tensors.get(str(source.cells[run].get("cell")), ())
        if row.get("role") == role
    ]
    return [entry for entry in found if entry is not None]


def _middle(found: list[float]) -> str:
    return f"{median(found):.3g}" if found else "–"


def _trust(source: Source) -> tuple[str, ...]:
    """How often another seed changes the label, and what another execution plan does."""
    pairs = source.seed_pairs
    if pairs is None:
        return ()
    return (
        f"Another seed changes the label in {pairs.changed:,} of {count_of(pairs.n, 'pair')} "
        f"({100 * pairs.changed / pairs.n:.0f} %): runs that differ in the seed alone.",
        "Another execution plan (threads, width of buckets, type of numbers) adds the same sums in "
        "another order, and training amplifies the last bits: near a border it may change a label "
        "too. One study cannot tell how often; docs/equality.md says how to measure it.",
    )


def _progress(source: Source) -> dict[str, str] | None:
    """How far an unfinished study is, with the steps of the bucket that is under way."""
    if source.finished:
        return None
    begun = source.under_way.done if source.under_way else 0.0
    return {"done": f"{round(len(source.cells) + begun, 2):g}", "of": str(source.n_cells)}


def _cost(source: Source) -> list[tuple[str, str]]:
    seconds = [s for row in source.timing if (s := number(row, "seconds")) is not None]
    done = len(source.cells)
    rows = [("runs", f"{done:,} of {source.n_cells:,}" if done < source.n_cells else f"{done:,}")]
    if seconds:
        rows.append(("buckets", f"{len(seconds):,}"))
        rows.append(("time", duration(sum(seconds))))
        if done:
            rows.append(("time a run", duration(sum(seconds) / done)))
    return rows


def _pairs(found: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return a mapping as short (name, words) pairs; nested tables as JSON."""
    return [
        (
            str(name).replace("_", " "),
            json.dumps(v, default=str) if isinstance(v, Mapping | list) else text_of(v),
        )
        for name, v in found.items()
        if v is not None
    ]

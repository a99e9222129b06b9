"""Figures fit for a paper: the maps, the labels and the spread of seeds, as SVG and PNG.

The same study gives the same bytes: no date, fixed ids, text as outlines.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from initrate.report._colours import LABELS, ink, label_style, ramp
from initrate.report._grid import Grid
from initrate.report._maps import SEEN_THRESHOLD, Map, MapCell, pair_words, probe_words
from initrate.report._seed_figure import seed_figure
from initrate.report._source import Source
from initrate.report._words import label_words, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_FACETS = 12
"""A figure of more tables than this would be unreadable; the page shows them all."""

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#5a606b",
    "axes.labelcolor": "#1b1f26",
    "xtick.color": "#5a606b",
    "ytick.color": "#5a606b",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "svg.hashsalt": "initrate",
    "svg.fonttype": "path",
    "hatch.linewidth": 0.5,
    "text.parse_math": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


_MAKER = "initrate report"
"""By this a figure is known as one that a new report may replace."""
_SVG = {"Date": None, "Creator": _MAKER}


@dataclass(frozen=True, slots=True)
class SavedFigure:
    """One figure in both formats."""

    name: str
    title: str
    svg: bytes
    png: bytes


def draw_figures(source: Source, grid: Grid, maps: tuple[Map, ...]) -> tuple[SavedFigure, ...]:
    """Return a figure for each map, and one of the seeds' spread along the first axis."""
    if not source.cells:
        return ()
    import matplotlib

    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **_STYLE}):
        figures = [
            _saved(f"map-{one.key}", one.title, _map_figure(source, grid, one)) for one in maps
        ]
        if grid.columns is not None and len(grid.columns.values) > 1:
            figures.append(
                _saved("seeds", "Seeds", seed_figure(source, grid, MOST_FACETS, caption(source)))
            )
    return tuple(figures)


def _saved(name: str, title: str, figure: Figure) -> SavedFigure:
    svg, png = io.BytesIO(), io.BytesIO()
    # Measured once for both formats: by itself each would draw the figure once more to measure it.
    figure.draw_without_rendering()
    box = figure.get_tightbbox().padded(0.06)
    figure.savefig(svg, format="svg", bbox_inches=box, metadata={**_SVG, "Title": title})
    figure.savefig(png, format="png", bbox_inches=box, dpi=300, metadata={"Software": _MAKER})
    return SavedFigure(name, title, svg.getvalue(), png.getvalue())


def _map_figure(source: Source, grid: Grid, one: Map) -> Figure:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize
    from matplotlib.figure import Figure

    tables = one.tables[:MOST_FACETS]
    n_rows, n_columns = len(tables[0]), len(tables[0][0])
    wide = 0.9 + 0.47 * n_columns
    tall = 0.75 + 0.36 * n_rows
    figure = Figure(figsize=(wide * min(len(tables), 3) + 0.5, tall * -(-len(tables) // 3)))
    panels = figure.subplots(-(-len(tables) // 3), min(len(tables), 3), squeeze=False)
    for panel in panels.flat[len(tables) :]:
        panel.set_axis_off()
    for panel, table, facet in zip(panels.flat, tables, grid.facets, strict=False):
        for y, row in enumerate(table):
            for x, cell in enumerate(row):
                _draw_cell(panel, cell, one.kind, x, y)
        _dress(panel, grid, n_columns, n_rows)
        panel.set_title(facet.words or one.title, fontsize=8.5, loc="left", pad=5)
    figure.subplots_adjust(wspace=0.35, hspace=0.75)
    if one.kind == "share":
        colours = ListedColormap([ramp(i / 255) for i in range(256)])
        shades = ScalarMappable(Normalize(0, 1), colours)
        bar = figure.colorbar(shades, ax=panels, fraction=0.035, pad=0.025, ticks=[0, 0.5, 1])
        bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    _map_legend(figure, one, caption(source, probe=one.key == "probe"))
    return figure


def caption(source: Source, *, probe: bool = False) -> str:
    """Return what a figure is of, so that it stands alone: variant, pair, number of seeds."""
    pair = f"probe {probe_words(source)}" if probe else pair_words(source).removeprefix("the ")
    seeds = source.seeds_in_words if source.finished else f"up to {source.seeds_in_words}"
    return " · ".join(part for part in (source.variant, pair, seeds) if part)


def _draw_cell(panel: Axes, cell: MapCell, kind: str, x: int, y: int) -> None:
    from matplotlib.patches import Rectangle

    box = {"xy": (x - 0.47, y - 0.46), "width": 0.94, "height": 0.92, "linewidth": 0}
    if kind == "share" and cell.shown is not None:
        fill = ramp(cell.shown)
        panel.add_patch(Rectangle(**box, facecolor=fill))
        if cell.hatched:
            panel.add_patch(
                Rectangle(**box, facecolor="none", edgecolor="#00000066", hatch="/////")
            )
        panel.text(
            x,
            y,
            share(cell.shown),
            ha="center",
            va="center",
            fontsize=7,
            color=ink(fill),
            bbox={"facecolor": fill, "linewidth": 0, "pad": 0.8} if cell.hatched else None,
        )
    elif kind == "label" and cell.marks:
        panel.add_patch(Rectangle(**box, facecolor="#f3f1ea"))
        if cell.hatched:
            panel.add_patch(
                Rectangle(**box, facecolor="none", edgecolor="#00000066", hatch="/////")
            )
        spread = min(0.3, 0.84 / len(cell.marks))
        if cell.hatched:
            wide = min(0.94, spread * len(cell.marks))
            panel.add_patch(
                Rectangle((x - wide / 2, y - 0.22), wide, 0.44, facecolor="#f3f1ea", linewidth=0)
            )
        for place, mark in enumerate(cell.marks):
            at = x + (place - (len(cell.marks) - 1) / 2) * spread
            text = mark.letter if mark.number == 1 else f"{mark.letter}{mark.number}"
            style = label_style(mark.label)
            panel.text(
                at,
                y,
                text,
                ha="center",
                va="center",
                fontsize=6.5,
                color=style.light,
                fontweight="bold",
            )
    else:
        if cell.hatched:
            panel.add_patch(
                Rectangle(**box, facecolor="none", edgecolor="#00000066", hatch="/////")
            )
        panel.text(x, y, "·", ha="center", va="center", color="#8b909a")


def _dress(panel: Axes, grid: Grid, n_columns: int, n_rows: int) -> None:
    panel.set_xlim(-0.5, n_columns - 0.5)
    panel.set_ylim(n_rows - 0.5, -0.5)
    panel.set_xticks(range(n_columns))
    panel.set_yticks(range(n_rows))
    panel.set_xticklabels(grid.columns.texts if grid.columns else ("",))
    panel.set_yticklabels(grid.rows.texts if grid.rows else ("",))
    if grid.columns:
        panel.set_xlabel(grid.columns.full)
    if grid.rows:
        panel.set_ylabel(grid.rows.short)
    panel.tick_params(length=0)
    for side in panel.spines.values():
        side.set_visible(False)


def _map_legend(figure: Figure, one: Map, below: str) -> None:
    """Letters and hatching said in words under the figure, so that it stands alone."""
    words = []
    if one.kind == "label":
        found = dict.fromkeys(mark.label for cell in one.cells for mark in cell.marks)
        ordered = sorted(found, key=lambda name: [*LABELS, name].index(name))
        words += [f"{label_style(name).letter}  {label_words(name)}" for name in ordered]
    if any(cell.hatched for cell in one.cells):
        words.append(f"hatched: seen pairs below {SEEN_THRESHOLD:.2f}")
    lines = ["     ".join(words), below] if words else [below]
    figure.text(
        0.5,
        -0.25 / figure.get_figheight(),
        "\n".join(lines),
        ha="center",
        va="top",
        fontsize=7,
        linespacing=1.6,
        color="#5a606b",
    )

"""The figure of seeds: each one's composed share along the first axis, and what the marks mean."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

from initrate.report._grid import Grid, Group
from initrate.report._maps import is_fitted, runs_shown
from initrate.report._source import Source, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_BLUE = "#1c5d99"
_HALF = "#c9c5bb"
_SOFT = "#5a606b"


def seed_figure(source: Source, grid: Grid, most: int, below: str) -> Figure:
    """Return every seed's composed share along the first axis, one panel a row of the map.

    There are at most `most` panels; `below` is the caption. Filled marks are runs that fit, hollow
    ones runs that did not.
    """
    from matplotlib.figure import Figure

    rows = [row for facet in grid.facets for row in facet.groups][:most]
    across = min(len(rows), 3)
    figure = Figure(figsize=(2.5 * across + 0.3, 1.9 * -(-len(rows) // across)))
    panels = figure.subplots(
        -(-len(rows) // across), across, squeeze=False, sharex=True, sharey=True
    )
    for panel in panels.flat[len(rows) :]:
        panel.set_axis_off()
    assert grid.columns is not None
    drawn: dict[str, Line2D] = {}
    for panel, row in zip(panels.flat, rows, strict=False):
        drawn |= _draw_row(panel, source, row)
        panel.set_title(", ".join(row[0].settings[1:]), fontsize=8, loc="left")
        panel.set_ylim(-0.04, 1.04)
        panel.set_yticks([0, 0.5, 1])
        panel.set_xticks(range(len(row)))
        panel.set_xticklabels(grid.columns.texts)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    figure.supxlabel(grid.columns.full, fontsize=8)
    figure.supylabel("composed share", fontsize=8)
    figure.tight_layout()
    order = sorted(drawn, key=_order)
    _explain(figure, {words: drawn[words] for words in order}, below)
    return figure


def _order(words: str) -> int:
    """Marks before lines, whatever the first panel has."""
    starts = ("a ", "median", "one half")
    place = next(k for k, start in enumerate(starts) if words.startswith(start))
    return 2 * place + words.endswith("did not fit")


def _draw_row(panel: Axes, source: Source, row: tuple[Group, ...]) -> dict[str, Line2D]:
    """Draw a panel and return what was drawn, by what it means."""
    one = source.one_seed
    found: dict[str, list[tuple[int, float]]] = {f"a {one}": [], f"a {one} that did not fit": []}
    middles: list[tuple[int, float]] = []
    for x, group in enumerate(row):
        shares: list[float] = []
        for run in runs_shown(source, group):
            share = number(source.cells[run], "inferential_accuracy")
            if share is not None:
                shares.append(share)
                fitted = is_fitted(source.cells[run])
                found[f"a {one}" if fitted else f"a {one} that did not fit"].append((x, share))
        # A line through single seeds would feign a trend that one seed cannot show.
        middles.append((x, median(shares) if len(shares) > 1 else math.nan))
    drawn: dict[str, Line2D] = {}
    for (words, points), fill in zip(found.items(), (_BLUE, "white"), strict=True):
        if points:
            style = {"ms": 3.2, "mfc": fill, "mec": _BLUE, "mew": 0.8, "zorder": 3}
            (drawn[words],) = panel.plot(*zip(*points, strict=True), "o", **style)
    if any(not math.isnan(y) for _, y in middles):
        name = f"median of the {one}s"
        (drawn[name],) = panel.plot(*zip(*middles, strict=True), "-", lw=1, color=_BLUE)
    drawn["one half"] = panel.axhline(0.5, lw=0.8, color=_HALF, zorder=0)
    return drawn


def _explain(figure: Figure, drawn: dict[str, Line2D], below: str) -> None:
    """What the marks mean and what the figure is of, under it: it may have to stand alone."""
    tall = figure.get_figheight()
    # Of a narrow figure the legend takes a second row.
    figure.legend(
        list(drawn.values()),
        list(drawn),
        loc="upper center",
        bbox_to_anchor=(0.5, -0.02 / tall),
        ncols=len(drawn) if figure.get_figwidth() > 5 else 2,
        frameon=False,
        fontsize=6.5,
        labelcolor=_SOFT,
        handlelength=1.6,
        borderaxespad=0,
    )
    n_rows = 1 if figure.get_figwidth() > 5 else -(-len(drawn) // 2)
    figure.text(
        *(0.5, -(0.1 + 0.15 * n_rows) / tall),
        below,
        ha="center",
        va="top",
        fontsize=6.5,
        color=_SOFT,
    )

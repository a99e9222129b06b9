"""The picture of a search: its crossings with their intervals, and every cell it asked for."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from initrate.boundary._find import HIT, MISS
from initrate.boundary._result import SearchResult
from initrate.files import write_whole

PICTURE = "boundary.svg"
_STYLE: Any = {"svg.hashsalt": "initrate", "svg.fonttype": "none", "font.size": 9}
_BLUE, _GREY = "#1c5d99", "#5f6672"


def draw_picture(result: SearchResult) -> Path:
    """Draw a search into its folder and return the path of the SVG; equal results, equal bytes.

    A disc is a value at which cells were trained: its filled part is the share with the label,
    its size grows with their number.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    search, svg = result.search, io.BytesIO()
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(6.4, 1.3 + 0.55 * search.shape.rows))
        axes = figure.subplots()
        hits = (result.labels == HIT).sum(axis=-1)
        tries = (result.labels >= MISS).sum(axis=-1)
        rows, columns = np.nonzero(tries)
        places = np.array(search.values)[columns]
        for counts, colour in ((tries, "white"), (hits, _BLUE)):
            size = 14.0 * counts[rows, columns]
            some = size > 0
            where = (places[some], rows[some])
            axes.scatter(*where, s=size[some], c=colour, edgecolors=_BLUE, linewidths=0.7)
        for row, boundary in enumerate(result.boundaries):
            for crossing in boundary.crossings:
                style = "-" if boundary.resolved else ":"
                x = [crossing.low, crossing.high]
                axes.plot(x, [row + 0.3] * 2, style, color=_GREY, linewidth=2.5)
                axes.plot([crossing.estimate], [row + 0.3], "|", color="black", markersize=10)
        names = " or ".join(search.labels).replace("_", " ")
        axes.set_xlabel(
            f"{search.axis}: filled {names}; bars {search.aim.confidence:.0%} intervals"
        )
        axes.set_ylabel(search.by)
        axes.set_yticks(range(search.shape.rows), [str(found) for found in search.rows])
        axes.set_ylim(-0.6, search.shape.rows - 0.4)
        figure.savefig(svg, format="svg", bbox_inches="tight", metadata={"Date": None})
    write_whole(result.folder / PICTURE, svg.getvalue())
    return result.folder / PICTURE

"""Building a report: the page and its figures, written whole beside the study."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from initrate.errors import InputError
from initrate.files import make_folder, write_whole
from initrate.report._figures import draw_figures
from initrate.report._grid import make_grid
from initrate.report._maps import make_maps
from initrate.report._page import render_page
from initrate.report._read import read_source
from initrate.report._source import Source

if TYPE_CHECKING:
    from initrate.study import Store

PAGE = "report.html"
FIGURES = "figures"


def build_report(store: Store, out: Path | None = None) -> Path:
    """Return the path of the report of a study, finished or not, written anew.

    `report.html` is one file that needs nothing else; `figures/` beside it holds the same
    figures as SVG and PNG. Both go to the study's folder, or to `out`.
    """
    if not isinstance(getattr(store, "path", None), Path):
        raise InputError(
            f"build_report got {type(store).__name__}: expected a Store, as from Store.open(folder)"
        )
    for needed in ("jinja2", "matplotlib"):
        if importlib.util.find_spec(needed) is None:
            raise InputError(
                f"a report needs {needed}: install it with pip install 'initrate[lab]'"
            )
    return write_report(read_source(store), Path(out or store.path))


def write_report(source: Source, folder: Path) -> Path:
    """Return the path of the page, written whole into a folder with its figures."""
    grid = make_grid(source)
    maps = make_maps(source, grid)
    figures = draw_figures(source, grid, maps)
    page = render_page(source, grid, maps, figures)
    make_folder(folder / FIGURES if figures else folder)
    for figure in figures:
        write_whole(folder / FIGURES / f"{figure.name}.svg", figure.svg)
        write_whole(folder / FIGURES / f"{figure.name}.png", figure.png)
    # The page last: it names figures that are there.
    write_whole(folder / PAGE, page.encode("utf-8"))
    return folder / PAGE

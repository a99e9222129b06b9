"""Building a report: the page and its figures, written whole beside the study."""

from __future__ import annotations

import importlib.util
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from initrate.errors import InputError, StoreError
from initrate.files import check_plain, make_folder, shown, write_whole
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
PAGE_MARK = b'<meta name="generator" content="initrate report">'
FIGURE_MARK = b"initrate report"
"""By these a page and a figure are known as ours, which a new report may replace."""
_HEAD = 4096
"""Bytes at the beginning of a file that hold its mark."""


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
    folder = store.path if out is None else Path(out)
    _check_no_other_study(folder, store.path)
    check_report_place(folder)  # Before the work, and again before the writing.
    return write_report(read_source(store), folder)


def _check_no_other_study(folder: Path, own: Path) -> None:
    """Check that a page does not take the place of the page of another study."""
    if os.path.lexists(folder / "study.json") and not own.resolve() == folder.resolve():
        raise StoreError(
            f"{shown(folder)} is the folder of another study, whose report this would replace: "
            "choose another folder"
        )


def check_report_place(folder: Path) -> None:
    """Check that no page or figure of someone else has a name that a report would take."""
    places = [(folder / PAGE, PAGE_MARK)]
    with suppress(FileNotFoundError, NotADirectoryError):
        figures = sorted((folder / FIGURES).iterdir()) if (folder / FIGURES).is_dir() else []
        named = [path for path in figures if (path.stem == "seeds" or path.stem.startswith("map-"))]
        places += [(p, FIGURE_MARK) for p in named if p.suffix in (".svg", ".png")]
    for path, mark in places:
        if os.path.lexists(path) and not _is_ours(path, mark):
            raise StoreError(
                f"{shown(path)} was not written by initrate report: move it away, or choose "
                "another folder"
            )


def _is_ours(path: Path, mark: bytes) -> bool:
    try:
        check_plain(path, links=False)
        with path.open("rb") as file:
            return mark in file.read(_HEAD)
    except InputError as error:
        if isinstance(error.__cause__, OSError):
            raise StoreError(str(error)) from error
        return False


def write_report(source: Source, folder: Path) -> Path:
    """Return the path of the page, written whole into a folder with its figures."""
    grid = make_grid(source)
    maps = make_maps(source, grid)
    figures = draw_figures(source, grid, maps)
    page = render_page(source, grid, maps, figures)
    check_report_place(folder)
    make_folder(folder / FIGURES if figures else folder)
    for figure in figures:
        write_whole(folder / FIGURES / f"{figure.name}.svg", figure.svg)
        write_whole(folder / FIGURES / f"{figure.name}.png", figure.png)
    # The page last: it names figures that are there.
    write_whole(folder / PAGE, page.encode("utf-8"))
    return folder / PAGE

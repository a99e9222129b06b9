from __future__ import annotations

import struct
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.lines import Line2D

from initrate.report._figures import caption, draw_figures
from initrate.report._grid import make_grid
from initrate.report._maps import make_maps
from initrate.report._seed_figure import seed_figure
from initrate.report._source import Axis
from tests.report.synthetic import PHASE, synthetic


def figures_of(source):
    grid = make_grid(source)
    return {one.name: one for one in draw_figures(source, grid, make_maps(source, grid))}


def test_a_figure_for_every_map_and_one_of_the_seeds():
    axes = (Axis("gamma", "gamma", (0.3, 0.5, 0.8)),)
    figures = figures_of(synthetic(axes=axes, mirrored=True))
    assert list(figures) == [
        *("map-inferential", "map-symmetric", "map-seen", "map-probe", "map-labels", "seeds")
    ]
    for figure in figures.values():
        root = ElementTree.fromstring(figure.svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert figure.png.startswith(b"\x89PNG")
        width, _ = struct.unpack(">II", figure.png[16:24])
        # At 300 dots an inch at least two inches: fit for a column of a paper.
        assert width > 600


def test_the_same_study_gives_the_same_bytes():
    axes = (Axis("gamma", "gamma", (0.4, 0.8)), Axis("depth", "depth", (2,)))
    once, again = figures_of(synthetic(axes=axes)), figures_of(synthetic(axes=axes))
    assert once == again
    assert all(b"<dc:date>" not in figure.svg for figure in once.values())


def test_a_third_axis_opens_panels():
    further = Axis("weight_decay", "weight_decay", (0.01, 0.03, 0.1, 0.3))
    few = tuple(replace(axis, values=axis.values[-2:]) for axis in PHASE)
    figures = figures_of(synthetic(axes=(*few, further), n_seeds=1))
    assert b"<svg" in figures["map-inferential"].svg
    assert b"<svg" in figures["seeds"].svg


@pytest.mark.parametrize("lrs", [(), (1e-4, 2e-4)])
def test_studies_of_one_cell_can_be_drawn(lrs):
    figures = figures_of(synthetic(axes=(), n_seeds=1, lrs=lrs))
    assert "seeds" not in figures
    assert "map-inferential" in figures


def test_names_are_drawn_as_they_are():
    # Dollar signs would start a formula, whose error would end the report.
    axes = (Axis("x", "x", ("$\\bad$", "<b>&")),)
    assert "seeds" in figures_of(synthetic(axes=axes))


def test_a_study_without_runs_has_no_figures():
    assert figures_of(synthetic(share_done=0)) == {}


def test_a_figure_says_what_it_is_of():
    source = replace(synthetic(mirrored=True), variant="34-wrong+probe")
    assert caption(source) == "34-wrong+probe · unseen pair (4, 3) · 3 seeds"
    assert caption(source, probe=True).startswith("34-wrong+probe · probe (1, 2) and (2, 1)")
    assert caption(synthetic(share_done=0.5)).endswith("up to 3 seeds")


@pytest.mark.parametrize(("n_seeds", "n_lines"), [(1, 0), (3, 1)])
def test_single_seeds_are_not_joined_by_a_line(n_seeds, n_lines):
    source = synthetic(axes=PHASE[:1], n_seeds=n_seeds)
    figure = seed_figure(source, make_grid(source), 12, caption(source))
    (panel,) = figure.axes
    joined = [
        line
        for line in panel.lines
        if line.get_linestyle() == "-" and np.size(line.get_xdata()) > 2
    ]
    assert len(joined) == n_lines
    assert any("seed" in text.get_text() for text in figure.texts)


def legend_of(source):
    figure = seed_figure(source, make_grid(source), 12, caption(source))
    (legend,) = figure.legends
    handles = zip(legend.get_texts(), legend.legend_handles, strict=True)
    return {text.get_text(): handle for text, handle in handles}


@pytest.mark.parametrize(
    ("gammas", "n_seeds", "words"),
    [
        ((0.3, 1.0), 3, ["a seed", "a seed that did not fit", "median of the seeds", "one half"]),
        ((0.9, 1.0), 3, ["a seed", "median of the seeds", "one half"]),
        ((0.3, 0.4), 1, ["a seed that did not fit", "one half"]),
    ],
)
def test_the_legend_of_seeds_has_what_is_drawn(gammas, n_seeds, words):
    axes = (Axis("gamma", "gamma", gammas), Axis("depth", "depth", (2, 3)))
    assert list(legend_of(synthetic(axes=axes, n_seeds=n_seeds))) == words


def test_seeds_that_did_not_fit_are_hollow():
    found = legend_of(synthetic(axes=(Axis("gamma", "gamma", (0.3, 1.0)),)))
    hollow, filled = found["a seed that did not fit"], found["a seed"]
    assert isinstance(hollow, Line2D) and isinstance(filled, Line2D)
    assert hollow.get_markerfacecolor() == "white" != filled.get_markerfacecolor()


@pytest.mark.parametrize(("gammas", "is_hatched"), [((0.3, 1.0), True), ((0.9, 1.0), False)])
def test_the_map_of_labels_is_hatched_as_the_others(gammas, is_hatched):
    figures = figures_of(synthetic(axes=(Axis("gamma", "gamma", gammas),)))
    for name in ("map-labels", "map-inferential"):
        assert (b"<pattern" in figures[name].svg) == is_hatched

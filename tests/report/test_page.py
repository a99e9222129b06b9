from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from initrate.report._grid import make_grid
from initrate.report._maps import make_maps
from initrate.report._page import render_page
from initrate.report._source import Axis, SeedPairs, Source
from tests.report.synthetic import PHASE, synthetic

HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
VOID = {"meta", "br", "img", "input", "link"}


class Page(HTMLParser):
    """Checks that elements close in order, and keeps what tests ask about."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert self.opened == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.opened.append(tag)

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def handle_data(self, data):
        if not self.opened or self.opened[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def buttons(self) -> list[dict[str, str | None]]:
        return [a for tag, a in self.elements if tag == "button" and "data-group" in a]


def page_of(source: Source) -> str:
    grid = make_grid(source)
    return render_page(source, grid, make_maps(source, grid), ())


STUDIES = {
    "phase": synthetic(),
    "mirrored": synthetic(mirrored=True),
    "one axis": synthetic(axes=PHASE[:1]),
    "no axis": synthetic(axes=(), n_seeds=1),
    "three axes": synthetic(axes=(*PHASE, Axis("weight_decay", "weight_decay", (0.01, 1.0)))),
    "words": synthetic(axes=(Axis("activation", "activation", ("relu", "gelu")),)),
    "best-lr": synthetic(lrs=(1e-4, 2e-4)),
    "many seeds": synthetic(n_seeds=20),
    "crossed seeds": synthetic(crossed={"init": (1, 2), "order": (1, 2)}),
    "unfinished": synthetic(share_done=0.3),
    "nothing yet": synthetic(share_done=0),
    "hostile": synthetic(name=HOSTILE, description=HOSTILE),
}


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_makes_a_whole_page_that_asks_for_nothing(name):
    html = page_of(STUDIES[name])
    page = Page(html)
    for tag, attributes in page.elements:
        for link in ("src", "href"):
            target = attributes.get(link)
            if tag == "a" and target is not None:
                assert target.startswith(("#", "figures/"))
            else:
                assert target is None or target.startswith("data:")
    assert "@import" not in html
    assert not re.search(r"url\(", html)
    assert re.findall(r"https?://[^\s\"']+", html) in ([], ["http://www.w3.org/2000/svg"])


@pytest.mark.parametrize("name", STUDIES)
def test_every_button_of_the_maps_says_what_it_is(name):
    source = STUDIES[name]
    n_groups = len(make_grid(source).groups)
    buttons = Page(page_of(source)).buttons()
    assert len(buttons) % n_groups == 0
    assert all(button["aria-label"] for button in buttons)
    assert {int(b["data-group"] or -1) for b in buttons} == set(range(n_groups))


def test_names_from_files_are_text():
    source = synthetic(name=HOSTILE, description=HOSTILE, axes=(Axis("x", "x", (HOSTILE, "b")),))
    cells = [{**row, "label": HOSTILE, "cell": HOSTILE} for row in source.cells]
    hostile = replace(
        source,
        cells=cells,
        config_text=HOSTILE,
        environment={HOSTILE: HOSTILE},
        facts=((HOSTILE, HOSTILE),),
    )
    page = Page(page_of(hostile))
    assert HOSTILE in page.text
    assert not [tag for tag, _ in page.elements if tag == "img"]
    assert len([tag for tag, _ in page.elements if tag == "script"]) == 2
    assert not [a for _, a in page.elements if any(name.startswith("on") for name in a)]


def test_map_values_are_printed_and_hatched_cells_marked():
    page = Page(page_of(synthetic()))
    hatched = [b for b in page.buttons() if "hatched" in (b["class"] or "").split()]
    assert hatched
    assert all("below 0.90" in (b["title"] or "") for b in hatched if "v0" in (b["class"] or ""))
    assert "0.99" in page.text


def test_what_stands_beside_the_diagram_is_there():
    text = Page(page_of(synthetic())).text
    for words in ("ordered additive", "nearest neighbour", "the key and one anchor", "4.52"):
        assert words in text
    for words in ("block-to-skip", "σ√d query", "Σ lr × decay", "torch", "2.13.0", "time a run"):
        assert words in text
    assert "A demonstration at a small size" in text


def test_an_unfinished_study_shows_how_far_it_is():
    page = Page(page_of(synthetic(share_done=0.5)))
    (progress,) = [a for tag, a in page.elements if tag == "progress"]
    assert (progress["value"], progress["max"]) == ("36", "72")
    assert "36 of 72 runs are in" in page.text
    assert not [tag for tag, _ in Page(page_of(synthetic())).elements if tag == "progress"]


def test_maxima_over_learning_rates_are_called_so():
    text = Page(page_of(synthetic(lrs=(1e-4, 2e-4)))).text
    assert "Composed (inferential), maximum" in text
    assert "Composed (inferential) at lr by loss" in text
    assert "Maps called a maximum take the best of them for each answer apart" in text


def test_the_page_stays_small():
    assert len(page_of(synthetic()).encode()) < 600_000


def test_the_page_says_how_to_cite_it():
    text = Page(page_of(replace(synthetic(), variant="without-34"))).text
    assert "How to cite this result" in text
    assert "initrate 0.1.0, study 9f2b61c04d7e, without-34, 3 seeds, 72 runs." in text
    assert "NeurIPS 2024, arXiv 2405.05409" in text


def test_a_map_of_few_cells_has_larger_ones():
    few = synthetic(axes=(Axis("gamma", "gamma", (0.6, 0.8)),))
    assert 'class="grid few"' in page_of(few)
    assert 'class="grid few"' not in page_of(synthetic())


def test_commutes_of_runs_that_are_not_fitted_is_hatched_and_has_no_number():
    html = page_of(synthetic(axes=(Axis("gamma", "gamma", (0.3, 0.9)),)))
    begun = html[html.index('<figure class="map" data-map="commutes"') :]
    page = Page(begun.partition("</figure>")[0] + "</figure>")
    unfit, fitted = page.buttons()
    assert {"empty", "hatched"} <= set((unfit["class"] or "").split())
    assert (unfit["title"] or "").endswith("not fitted")
    assert "commutes" in (fitted["title"] or "")
    assert "hatched" not in (fitted["class"] or "")


def test_crossed_seeds_claim_no_coverage():
    source = synthetic(axes=PHASE[:1], crossed={"init": (1, 2), "order": (1, 2)})
    html = page_of(source)
    page = Page(html)
    assert "range of 4 runs, 2 init seeds × 2 order seeds: 0." in html
    assert "(covers" not in html
    assert "one tick a run" in page.text
    assert "one letter a run" in page.text
    assert "(covers" in page_of(synthetic(axes=PHASE[:1]))


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (SeedPairs(24, 6), "Another seed changes the label in 6 of 24 pairs (25 %)"),
        (SeedPairs(1, 0), "Another seed changes the label in 0 of 1 pair (0 %)"),
        (None, None),
    ],
)
def test_the_page_says_how_often_another_seed_changes_the_label(pairs, words):
    text = Page(page_of(replace(synthetic(), seed_pairs=pairs))).text
    assert ("How steady a label is" in text) == (words is not None)
    assert words is None or words in text


def test_wide_tables_are_reached_by_keys():
    page = Page(page_of(synthetic()))
    boxes = [a for _, a in page.elements if a.get("class") == "sideways" and "tabindex" in a]
    assert len(boxes) == 4
    assert all(box["role"] == "region" and box["aria-label"] for box in boxes)


def test_a_head_without_sentences_takes_the_whole_width():
    source = synthetic(name="mine", axes=(), n_seeds=2)
    cells = [{**row, "label": "not_trained"} for row in source.cells]
    assert 'class="head alone"' in page_of(replace(source, cells=cells))
    # A caution alone is no second half either, and stands below.
    page = page_of(replace(source, cells=cells, changed="Changed from the preset laptop: steps."))
    assert 'class="head alone"' in page and 'class="caution"' in page
    assert 'class="head"' in page_of(synthetic())


def test_a_changed_preset_is_not_titled_as_the_preset():
    changed = "Changed from the preset laptop: steps."
    source = replace(synthetic(), changed=changed, preset="laptop")
    page = page_of(source)
    assert '<span class="study">laptop, changed</span>' in page
    assert "<title>laptop, changed" in page
    assert changed in page
    for other in (replace(source, changed=""), replace(source, name="mine")):
        assert ", changed</span>" not in page_of(other)

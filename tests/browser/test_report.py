from __future__ import annotations

import csv
import io
import itertools
from pathlib import Path

import pytest

from tests.browser.conftest import HOSTILE
from tests.report.synthetic import synthetic

pytestmark = pytest.mark.browser

PHONE = {"width": 375, "height": 740}
SEEDED = ("crossed", "one setting", "long seeds", "six seeds", "twenty seeds")
NAMES = (
    *("demo", "phase", "mirrored", "best-lr", "unfinished", "nothing yet", "hostile"),
    *SEEDED,
)


def chosen(page) -> str:
    return page.locator("#panel h2").inner_text().replace("\u00a0", " ")


def cell(page, words: str):
    """Return the button of a cell on the map shown."""
    return page.locator(f'figure.map:not([hidden]) button.cell[aria-label^="{words}:"]')


def overflow(page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [320, 375, 768, 1280])
def test_every_page_opens_without_a_word_and_fits(open_page, name, width):
    page = open_page(name, width=width)
    assert page.locator("h1").is_visible()
    assert overflow(page) <= 0
    page.locator("summary").evaluate_all("all => all.forEach((s) => s.parentElement.open = true)")
    assert overflow(page) <= 0


def test_a_click_on_a_cell_shows_its_runs_and_curves(open_page):
    page = open_page("phase")
    cell(page, "γ\u00a00.6, depth\u00a03").click()
    assert chosen(page) == "γ 0.6, depth 3"
    assert page.locator("#panel .seeds tbody tr").count() == 3
    source = synthetic()
    wanted = [r for r in source.cells if r["gamma"] == 0.6 and r["depth"] == 3]
    shown = page.locator("#panel .seeds tbody td:first-of-type").all_inner_texts()
    assert [float(text) for text in shown] == pytest.approx(
        [row["inferential_accuracy"] for row in wanted], abs=0.0051
    )
    before = page.locator("#charts path.line").first.get_attribute("d")
    cell(page, "γ\u00a00.3, depth\u00a02").click()
    assert chosen(page) == "γ 0.3, depth 2"
    assert page.locator("#charts path.line").first.get_attribute("d") != before
    assert page.locator("figure.map:not([hidden]) button.cell[aria-pressed=true]").count() == 1


def test_arrow_keys_walk_the_map(open_page):
    page = open_page("phase")
    cell(page, "γ\u00a00.6, depth\u00a03").click()
    for key, words in [
        ("ArrowRight", "γ 0.7, depth 3"),
        ("ArrowDown", "γ 0.7, depth 4"),
        ("ArrowDown", "γ 0.7, depth 4"),
        ("End", "γ 1.0, depth 4"),
        ("ArrowUp", "γ 1.0, depth 3"),
        ("Home", "γ 0.3, depth 3"),
        ("ArrowLeft", "γ 0.3, depth 3"),
    ]:
        page.keyboard.press(key)
        assert chosen(page) == words
        focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert focused.replace("\u00a0", " ").startswith(f"{words}:")


def test_the_map_is_one_stop_of_the_tab_key(open_page):
    page = open_page("phase")
    stops = page.locator('figure.map:not([hidden]) button.cell[tabindex="0"]')
    assert stops.count() == 1
    page.locator("[data-show=labels]").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.classList.contains('cell')")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"


def test_another_map_keeps_the_chosen_cell(open_page):
    page = open_page("mirrored")
    cell(page, "γ\u00a00.7, depth\u00a02").click()
    for name in ("symmetric", "seen", "probe", "labels", "inferential"):
        page.locator(f"[data-show={name}]").click()
        assert page.locator("figure.map:visible").count() == 1
        assert page.locator("figure.map:visible").get_attribute("data-map") == name
        assert page.locator(f"[data-show={name}]").get_attribute("aria-pressed") == "true"
        assert cell(page, "γ\u00a00.7, depth\u00a02").get_attribute("aria-pressed") == "true"


def test_a_seed_picks_out_its_lines(open_page):
    page = open_page("phase")
    page.locator("#panel .seeds tbody tr").nth(1).focus()
    lines = page.locator("#charts [data-run]").count()
    dimmed = page.locator("#charts .dimmed").count()
    assert 0 < dimmed < lines
    page.locator("#panel .seeds tbody tr").nth(1).blur()
    assert page.locator("#charts .dimmed").count() == 0


def test_the_curves_can_be_read_off(open_page):
    page = open_page("phase")
    chart = page.locator("#charts .chart").first
    chart.locator("svg").last.hover()
    assert "step 500: seed 0 0." in chart.inner_text()


def test_charts_say_what_they_show(open_page):
    page = open_page("mirrored")
    labels = page.locator("#charts svg[role=img]").evaluate_all(
        "all => all.map((svg) => svg.getAttribute('aria-label'))"
    )
    assert len(labels) == 6
    assert labels[0].startswith("Unseen pair: inferential at the end, seed 0 0.")
    assert "most often key" in labels[3]


def test_the_pair_of_the_answers_can_be_chosen(open_page):
    page = open_page("mirrored")
    page.locator(".pair-choice button").nth(1).click()
    assert "What is answered to (1, 2)" in page.locator("#charts").inner_text()


def test_an_address_names_the_chosen_cell(open_page, pages):
    page = open_page("phase")
    cell(page, "γ\u00a00.9, depth\u00a04").click()
    place = page.evaluate("location.hash")
    page.goto("about:blank")
    page.goto(pages["phase"].as_uri() + place)
    assert chosen(page) == "γ 0.9, depth 4"


def test_learning_rates_of_a_maximum_are_one_by_one_in_reach(open_page):
    page = open_page("best-lr")
    assert page.locator("#panel .seeds tbody tr").count() == 2
    page.locator("#panel select").select_option("2e-4")
    assert page.locator("#panel .seeds td:nth-child(2)").all_inner_texts() == ["2e-4", "2e-4"]
    page.locator("#cell summary").click()
    assert page.locator("#runs tbody tr").count() == 6


def test_cells_that_wait_say_so(open_page):
    page = open_page("unfinished")
    page.locator("figure.map:not([hidden]) button.cell.empty").first.click()
    assert "No run of this cell has finished yet" in page.locator("#panel").inner_text()
    assert page.locator("#cell").is_hidden()


def test_names_from_files_stay_text(open_page):
    page = open_page("hostile")
    assert page.locator(".eyebrow .study").inner_text() == HOSTILE
    assert page.title() == f"{HOSTILE} · initrate"
    assert page.locator("img").count() == 0


def test_dark_mode_turns_the_page_and_the_ramp(open_page):
    def colours(page):
        return page.evaluate(
            """() => {
              const of = (name) => getComputedStyle(document.querySelector(name));
              const rgb = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
              const sum = (c) => c.reduce((a, b) => a + b, 0);
              return {
                page: sum(rgb(of("html").backgroundColor)), text: sum(rgb(of("h1").color)),
                low: sum(rgb(of(".cell.v0").backgroundColor)),
                high: sum(rgb(of(".ramp i.v20").backgroundColor)),
              };
            }"""
        )

    light = colours(open_page("phase", color_scheme="light"))
    dark = colours(open_page("phase", color_scheme="dark"))
    assert light["page"] > 700 > 150 > light["text"]
    assert dark["page"] < 100 < 600 < dark["text"]
    # Low values stay near the page in both, high ones stand out.
    assert light["low"] > light["high"]
    assert dark["low"] < dark["high"]


def test_on_paper_all_maps_are_shown_on_white(open_page):
    page = open_page("mirrored", color_scheme="dark")
    page.emulate_media(media="print")
    assert page.locator("figure.map:visible").count() == 5
    assert page.locator(".choice:visible").count() == 0
    paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert paper == "rgb(255, 255, 255)"
    assert page.pdf().startswith(b"%PDF")


def test_without_scripts_maps_and_tables_are_there(open_page):
    page = open_page("mirrored", java_script_enabled=False)
    assert page.locator("figure.map:visible").count() == 5
    assert page.locator(".map-choice").is_hidden()
    assert "With scripts switched off" in page.locator("#panel").inner_text()


def test_the_table_of_runs_can_be_saved(open_page, tmp_path: Path):
    page = open_page("phase")
    with page.expect_download() as waiting:
        page.locator("#save-csv").click()
    waiting.value.save_as(tmp_path / "runs.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "runs.csv").read_text("utf-8"))))
    wanted = synthetic().cells
    assert [row["cell"] for row in rows] == [row["cell"] for row in wanted]
    assert float(rows[7]["seen_accuracy"]) == wanted[7]["seen_accuracy"]
    assert rows[0]["symmetric_accuracy"] == ""


def test_figures_travel_inside_the_page(open_page, tmp_path: Path):
    page = open_page("demo")
    figures = page.locator(".figures figure")
    assert figures.count() == 7
    loaded = figures.locator("img").evaluate_all("all => all.every((i) => i.naturalWidth > 50)")
    assert loaded
    with page.expect_download() as waiting:
        figures.first.locator("[data-svg]").click()
    assert waiting.value.suggested_filename == "map-inferential.svg"
    waiting.value.save_as(tmp_path / "figure.svg")
    assert "<svg" in (tmp_path / "figure.svg").read_text("utf-8")


def test_a_narrower_window_draws_the_charts_anew(open_page):
    page = open_page("phase")
    wide = page.locator("#charts svg[role=img]").first.get_attribute("viewBox")
    page.set_viewport_size(PHONE)
    page.wait_for_function(
        "wide => document.querySelector('#charts svg[role=img]').getAttribute('viewBox') !== wide",
        arg=wide,
    )
    assert overflow(page) <= 0


def test_the_table_of_contents_for_screen_readers(open_page):
    page = open_page("phase")
    heads = page.locator("h1, h2").all_inner_texts()
    assert " composed; " in heads[0]
    wanted = ("How it got there", "What to hold it against", "What was run", "Words")
    assert [head for head in heads if head in wanted] == list(wanted)
    unnamed = page.locator("button").evaluate_all(
        "all => all.filter((b) => !(b.getAttribute('aria-label') || b.textContent).trim()).length"
    )
    assert unnamed == 0


def test_the_panel_shows_the_probe_and_what_the_seeds_spread_covers(open_page):
    page = open_page("mirrored")
    heads = page.locator("#panel .seeds thead th").all_inner_texts()
    assert heads == ["seed", "inferential", "symmetric", "probe", "seen"]
    assert "(covers 75\u00a0%)" in page.locator("#panel .spread").inner_text()
    page = open_page("demo")
    cell(page, "γ\u00a00.8").click()
    assert "carried over to its mirror image" in page.locator("#panel .meaning").inner_text()
    assert "one seed" in page.locator("#panel .spread").inner_text()


def test_the_loss_has_ticks_and_floors_apart(open_page):
    page = open_page("phase")
    chart = page.locator("#charts .chart", has_text="Training loss")
    names = chart.locator(".floor-name")
    places = sorted(names.evaluate_all("all => all.map((t) => Number(t.getAttribute('y')))"))
    assert len(places) > 1
    assert all(b - a >= 11 for a, b in itertools.pairwise(places))
    # Each name stands at its own line, in a strip that no curve reaches.
    lines = chart.locator("line.floor").evaluate_all(
        "all => all.map((line) => ['y1', 'x2'].map((side) => Number(line.getAttribute(side))))"
    )
    assert all(min(abs(y - 4 - at) for at, _ in lines) < 13 for y in places)
    edges = names.evaluate_all("all => all.map((text) => text.getBBox().x)")
    assert min(edges) >= max(right for _, right in lines)
    assert "a\u00a0no input 4.52" in chart.locator(".floor-names").inner_text()
    assert "logarithmic" in chart.locator(".key").inner_text()
    # Within 4.3 to 4.6 nats there is no 1, 2 or 5.
    ticks = page.evaluate("logTicks(Math.log10(4.3), Math.log10(4.6))")
    assert len(ticks) > 1
    assert all(4.3 <= tick <= 4.6 for tick in ticks)


def test_the_best_says_on_how_many_questions(open_page):
    page = open_page("phase")
    page.locator("#cell summary").click()
    heads = page.locator("#runs thead th").all_inner_texts()
    assert "best along the curve (512 questions)" in heads
    assert "inferential (all questions)" in heads


CHART_TEXTS = """all => all.map((svg) => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].map((text) => {
    const at = text.getBoundingClientRect();
    return { words: text.firstChild.data, name: text.matches("[class$=-name]"),
      x0: at.left, x1: at.right, y0: at.top, y1: at.bottom,
      aside: Math.min(at.left - box.left, box.right - at.right),
      beyond: Math.min(at.top - box.top, box.bottom - at.bottom) };
  });
})"""


@pytest.mark.parametrize("name", SEEDED)
@pytest.mark.parametrize("width", [320, 390, 1200])
def test_names_of_lines_lie_apart_and_within_their_chart(open_page, name, width):
    page = open_page(name, width=width)
    # Every cell of the map: lines that end together, apart, and at the edges of the frame.
    cells = page.locator("figure.map:not([hidden]) button.cell")
    n_pairs = 0
    for place in range(cells.count()):
        cells.nth(place).click()
        for texts in page.locator("#charts svg[role=img]").evaluate_all(CHART_TEXTS):
            # A line of text has some room above and below its letters.
            assert all(text["aside"] >= -0.5 and text["beyond"] >= -3 for text in texts), texts
            for one, other in itertools.combinations(texts, 2):
                if one["name"] or other["name"]:
                    n_pairs += 1
                    assert _apart(one, other), (one, other)
    assert n_pairs > 0
    assert overflow(page) <= 0


def _apart(one: dict[str, float], other: dict[str, float]) -> bool:
    beside = one["x1"] <= other["x0"] or other["x1"] <= one["x0"]
    return beside or one["y1"] <= other["y0"] + 3 or other["y1"] <= one["y0"] + 3


@pytest.mark.parametrize("name", ["crossed", "long seeds"])
def test_long_names_of_seeds_stand_in_a_list_that_keys_reach(open_page, name):
    page = open_page(name, width=390)
    seeds = page.locator("#panel .seeds tbody th").all_inner_texts()
    lines = page.locator("#lines li")
    listed = lines.all_inner_texts()
    assert len(listed) == len(seeds) == 4
    for place, (line, seed) in enumerate(zip(listed, seeds, strict=True)):
        number, words = line.split(maxsplit=1)
        assert number == str(place + 1)
        assert words in seed
    # Names are wrapped, so that the numbers beside them stay in view.
    table = page.locator("#panel .sideways").evaluate("e => e.scrollWidth - e.clientWidth")
    assert table <= 0
    # Each seed is said in full where the chart says what it shows.
    said = page.locator("#charts svg[role=img]").first.get_attribute("aria-label") or ""
    assert all(line.split(maxsplit=1)[1] in said for line in listed)
    lines.nth(2).focus()
    assert 0 < page.locator("#charts .dimmed").count() < page.locator("#charts [data-run]").count()
    lines.nth(2).blur()
    assert page.locator("#charts .dimmed").count() == 0


@pytest.mark.parametrize("name", ["phase", "six seeds", "twenty seeds"])
def test_short_names_of_seeds_need_no_list(open_page, name):
    assert open_page(name).locator("#lines").is_hidden()


def test_many_lines_are_read_off_as_a_range(open_page):
    page = open_page("twenty seeds")
    chart = page.locator("#charts .chart").first
    chart.locator("svg").last.hover()
    assert "step 500: 20 runs, 0." in chart.inner_text()
    answers = page.locator("#charts .chart", has_text="What is answered")
    assert "The first 5 of 20 runs." in answers.inner_text()


def test_a_wide_table_scrolls_in_its_own_box(open_page):
    page = open_page("phase", width=390)
    page.locator("summary").evaluate_all("all => all.forEach((s) => s.parentElement.open = true)")
    box = page.get_by_role("region", name="Numbers that carry over")
    sizes = box.evaluate("e => [e.scrollWidth, e.clientWidth, e.getBoundingClientRect().right]")
    assert sizes[0] > sizes[1]
    assert sizes[2] <= 390
    assert box.evaluate("e => { e.scrollLeft = 9999; return e.scrollLeft; }") > 0
    assert page.evaluate("scrollX") == 0
    assert overflow(page) <= 0


def test_every_colour_of_the_answers_is_explained(open_page):
    page = open_page("mirrored")
    chart = page.locator("#charts .chart", has_text="What is answered")
    classes = "all => all.map((bar) => bar.getAttribute('class'))"
    used = chart.locator("svg[role=img] rect.bar").evaluate_all(classes)
    explained = chart.locator(".key rect.bar").evaluate_all(classes)
    assert set(used) <= set(explained)
    assert "another answer" in chart.locator(".key").inner_text()

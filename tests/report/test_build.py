from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from initrate.errors import InputError, StoreError
from initrate.report import _build, build_report, demo_config, open_demo
from initrate.report._read import read_source
from initrate.report.demo import FOLDER
from initrate.study import Store, StudyConfig, preset, run
from initrate.tasks import variant
from tests.report.test_page import Page
from tests.study import standin
from tests.study.conftest import small_study


def trained(folder: Path, config: StudyConfig, *, n_buckets: int | None = None) -> Store:
    """Return the store of a study that the stand-in trained, or of its first buckets."""
    done = 0

    def some(bucket, execution, **options):
        nonlocal done
        if n_buckets is not None and done >= n_buckets:
            raise RuntimeError("no further")
        done += 1
        return standin.train(bucket, execution, **options)

    return run(config, folder, threads=1, train=some, on_error="continue")


@pytest.fixture
def without_figures(monkeypatch):
    """The page alone: figures have tests of their own, and take most of the time."""
    monkeypatch.setattr(_build, "draw_figures", lambda *_: ())


def test_a_report_lies_in_the_folder_of_its_study(tmp_path):
    store = trained(tmp_path / "study", small_study())
    path = build_report(store)
    assert path == tmp_path / "study" / "report.html"
    names = {file.name for file in (tmp_path / "study" / "figures").iterdir()}
    assert {"map-inferential.svg", "map-inferential.png", "map-labels.svg", "seeds.png"} <= names
    assert Store.open(tmp_path / "study").status == "done"
    text = Page(path.read_text("utf-8")).text
    assert "16 runs" in text
    assert "34-wrong, length 9" in text


def test_an_unfinished_study_is_reported_and_then_anew(tmp_path, without_figures):
    half = trained(tmp_path / "study", small_study(), n_buckets=2)
    n_done, n_cells = half.progress()
    assert 0 < n_done < n_cells
    page = Page(build_report(half).read_text("utf-8"))
    assert f"{n_done} of {n_cells} runs are in" in page.text
    assert "under way" not in page.text
    assert len(page.buttons()) % 8 == 0
    whole = trained(tmp_path / "study", small_study())
    again = Page(build_report(whole).read_text("utf-8"))
    assert "runs are in" not in again.text


def test_a_study_of_which_nothing_is_done_is_reported(tmp_path):
    page = build_report(trained(tmp_path / "study", small_study(), n_buckets=0))
    assert "No run has finished yet" in Page(page.read_text("utf-8")).text
    assert not (tmp_path / "study" / "figures").exists()


@pytest.mark.parametrize(
    ("changes", "n_facets", "n_groups"),
    [
        ({"axes": {}}, 1, 1),
        ({"axes": {"lr": (1e-3, 2e-3), "weight_decay": (0.01, 0.1)}}, 1, 4),
        ({"axes": {"variant": ("34-wrong", "without-34"), "gamma": (0.5, 0.8)}}, 1, 4),
        ({"axes": {"gamma": (0.5,), "depth": (1, 2), "gamma_qk": (0.5, 0.8)}}, 2, 4),
        ({"axes": {"gamma": (0.5, 0.8)}, "protocol": "best-lr", "lrs": (1e-3, 2e-3)}, 1, 2),
        ({"axes": {"gamma": (0.5, 0.8)}, "seed_axes": {"init": (1, 2), "order": (1, 2)}}, 1, 2),
        ({"axes": {"activation": ("relu", "gelu")}}, 1, 2),
    ],
)
def test_any_grid_is_reported(tmp_path, without_figures, changes, n_facets, n_groups):
    config = replace(small_study(), **changes)
    store = trained(tmp_path / "study", config)
    source = read_source(store)
    page = Page(build_report(store, tmp_path / "out").read_text("utf-8"))
    buttons = page.buttons()
    assert {int(button["data-group"] or -1) for button in buttons} == set(range(n_groups))
    assert not any("no run finished" in (button["aria-label"] or "") for button in buttons)
    maps = [a for tag, a in page.elements if tag == "figure" and "data-map" in a]
    tables = [a for tag, a in page.elements if tag == "table" and "grid" in (a["class"] or "")]
    assert len(tables) == n_facets * len(maps)
    assert len(source.cells) == store.progress()[1]


def test_crossed_seeds_are_told_apart(tmp_path):
    config = replace(
        small_study(), axes={}, seeds=(1,), seed_axes={"init": (1, 2), "order": (1, 2, 3)}
    )
    source = read_source(trained(tmp_path / "study", config))
    assert source.seeds_in_words == "2 init seeds × 3 order seeds"
    shares = [row["inferential_accuracy"] for row in source.cells]
    words = source.spread(shares)
    assert words.startswith("range of 6 runs, 2 init seeds × 3 order seeds: 0.")
    assert "covers" not in words
    assert source.spread(shares[:5]).startswith("range of 5 runs, out of 2 init seeds × 3")
    found = {tuple(row[name] for name in source.seed_columns) for row in source.cells}
    assert len(found) == 6


def test_pairs_carry_the_shifts_of_their_answers(tmp_path):
    config = replace(small_study(), task=variant("34-wrong+probe"), axes={})
    pairs = {p.text: p for p in read_source(trained(tmp_path / "study", config)).pairs}
    assert (pairs["4,3"].composed_shift, pairs["4,3"].mirrored_shift) == (-10, -6)
    assert (pairs["1,2"].composed_shift, pairs["1,2"].mirrored_shift) == (6, None)
    assert [p.probe for p in pairs.values()] == [False, True, True]


def test_maps_that_do_not_commute_have_no_one_shift(tmp_path, without_figures):
    config = replace(small_study(), task=variant("non-commuting"), axes={})
    store = trained(tmp_path / "study", config)
    pairs = read_source(store).pairs
    assert any(pair.composed_shift is None for pair in pairs)
    assert build_report(store).exists()


def test_a_page_says_nothing_of_the_machine_it_was_trained_on(tmp_path, without_figures):
    store = trained(tmp_path / "study", small_study())
    html = build_report(store).read_text("utf-8")
    (session,) = store.sessions
    assert str(session["system"]) not in html
    assert str(tmp_path) not in html


def test_a_file_in_the_place_of_the_folder_is_one_line(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(StoreError, match="out"):
        build_report(open_demo(), tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


def test_the_demo_ships_trained_and_small():
    store = open_demo()
    assert store.status == "done"
    assert store.config == demo_config()
    files = [file for file in FOLDER.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 1_000_000
    labels = dict(store.cells().select("gamma", "label").iter_rows())
    assert labels == {0.6: "mixed", 0.8: "composed_with_mirrored_exception"}
    for cell in store.cells()["cell"]:
        assert "token_embedding.weight" in store.weights(cell)


def test_the_demo_names_no_machine():
    store = open_demo()
    assert {str(session["host"]) for session in store.sessions} == {""}
    assert set(store.timing()["host"]) == {""}


def test_the_report_of_the_demo_shows_both_answers(tmp_path):
    path = build_report(open_demo(), tmp_path / "demo")
    html = path.read_text("utf-8")
    text = Page(html).text
    assert "1 of 2 runs composed, but for an exception carried over to its mirror image" in text
    assert "On the probe the median composed share is above one half at γ 0.8." in text
    assert "trained for a minute" not in text
    assert "A demonstration at a small size" in text
    for title in (
        "Composed (inferential)",
        "Mirrored (symmetric)",
        "Seen pairs",
        "Probe",
        "Labels",
    ):
        assert title in text
    assert len(html.encode()) < 500_000


def test_what_is_no_store_is_one_line():
    with pytest.raises(InputError, match=r"got NoneType: expected a Store"):
        build_report(None)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("damaged", ["timing", "environment"])
def test_a_report_does_without_what_no_result_depends_on(tmp_path, without_figures, damaged):
    store = trained(tmp_path / "study", small_study())
    if damaged == "timing":
        next((tmp_path / "study" / "timing").glob("*.parquet")).write_bytes(b"not a table")
    else:
        (tmp_path / "study" / "environment.json").write_text("{")
    text = Page(build_report(store).read_text("utf-8")).text
    assert f"The {damaged} of this study cannot be read" in text
    assert "16 runs" in text


def test_a_damaged_table_of_results_stops_the_report(tmp_path, without_figures):
    store = trained(tmp_path / "study", small_study())
    next((tmp_path / "study" / "parts").glob("*/curves.parquet")).write_bytes(b"not a table")
    with pytest.raises(StoreError, match=r"curves\.parquet"):
        build_report(store)


def test_the_learning_rate_is_known_from_the_first_step():
    for rows in read_source(open_demo()).curves.values():
        assert (rows[0]["step"], rows[0]["lr"]) == (0, 0.0)


def test_another_seed_is_told_beside_the_label(tmp_path, without_figures):
    store = trained(tmp_path / "study", small_study())
    labels: dict[tuple[float, int], list[str]] = {}
    for gamma, depth, label in store.cells().select("gamma", "depth", "label").iter_rows():
        labels.setdefault((gamma, depth), []).append(label)
    changed = sum(len(set(found)) > 1 for found in labels.values())
    # Both seeds of the 8 settings are trained; some pairs differ and some do not.
    assert len(labels) == 8
    assert 0 < changed < 8
    text = Page(build_report(store).read_text("utf-8")).text
    assert (
        f"Another seed changes the label in {changed} of 8 pairs ({100 * changed / 8:.0f} %)"
        in (text)
    )
    assert "Another execution plan" in text


@pytest.mark.parametrize("n_buckets", [None, 0])
def test_without_pairs_of_seeds_nothing_is_said_of_them(tmp_path, without_figures, n_buckets):
    store = trained(tmp_path / "study", replace(small_study(), seeds=(1,)), n_buckets=n_buckets)
    assert read_source(store).seed_pairs is None
    assert "Another seed" not in Page(build_report(store).read_text("utf-8")).text


def test_a_preset_is_a_demonstration_until_it_is_changed(tmp_path, without_figures):
    tiny = small_study()
    laptop = preset("laptop")
    config = replace(laptop, model=tiny.model, training=tiny.training, seeds=(1,), axes={})
    source = read_source(trained(tmp_path / "changed", config))
    assert not source.demonstration
    assert source.changed.startswith("Changed from the preset laptop: model, training")
    assert source.description == ""
    text = Page(build_report(Store.open(tmp_path / "changed")).read_text("utf-8")).text
    assert source.changed in text
    assert "it is not evidence" not in text
    own = replace(tiny, description="A demonstration of mine.", axes={}, seeds=(1,))
    source = read_source(trained(tmp_path / "own", own))
    assert (source.demonstration, source.changed) == (False, "")
    assert source.description == "A demonstration of mine."
    assert read_source(open_demo()).demonstration


def test_the_page_of_another_study_is_not_replaced(tmp_path, without_figures):
    one = trained(tmp_path / "one", small_study())
    other = trained(tmp_path / "other", small_study())
    before = build_report(other).read_bytes()
    with pytest.raises(StoreError, match="the folder of another study") as found:
        build_report(one, tmp_path / "other")
    assert "\n" not in str(found.value)
    assert (tmp_path / "other" / "report.html").read_bytes() == before
    # Its own folder, named otherwise, is no other one's.
    (tmp_path / "link").symlink_to(tmp_path / "one")
    assert build_report(one, tmp_path / "link").exists()
    assert build_report(one, tmp_path / "beside").exists()

from __future__ import annotations

from dataclasses import replace
from statistics import fmean, median

import pytest

from initrate.report._grid import make_grid, member_rows
from initrate.report._maps import make_maps
from tests.report.synthetic import synthetic


def maps_of(source):
    return {one.key: one for one in make_maps(source, make_grid(source))}


def test_a_cell_shows_the_median_of_its_seeds_and_each_of_them():
    source = synthetic()
    for cell in maps_of(source)["inferential"].cells:
        seeds = [row["inferential_accuracy"] for row in member_rows(source, cell.group)]
        assert cell.shown == median(seeds)
        assert cell.seeds == tuple(sorted(seeds))


def test_cells_below_the_threshold_of_seen_pairs_are_hatched_on_every_map():
    source = synthetic()
    for one in maps_of(source).values():
        for cell in one.cells:
            seen = median(row["seen_accuracy"] for row in member_rows(source, cell.group))
            assert cell.hatched == (seen < 0.9)
    assert 0 < sum(cell.hatched for cell in maps_of(source)["seen"].cells) < 24


def test_maps_without_any_value_are_left_out():
    assert list(maps_of(synthetic())) == ["inferential", "seen", "commutes", "labels"]
    assert list(maps_of(synthetic(mirrored=True))) == [
        *("inferential", "symmetric", "seen", "probe", "labels")
    ]


def test_the_label_map_has_a_letter_a_seed():
    source = synthetic()
    for cell in maps_of(source)["labels"].cells:
        found = sorted(mark.label for mark in cell.marks)
        assert found == sorted(row["label"] for row in member_rows(source, cell.group))


def test_many_seeds_are_counted_by_letter():
    source = synthetic(n_seeds=20)
    for cell in maps_of(source)["labels"].cells:
        assert sum(mark.number for mark in cell.marks) == 20
        assert len({mark.label for mark in cell.marks}) == len(cell.marks)


def test_a_maximum_over_learning_rates_is_called_one_and_stands_beside_the_chosen():
    source = synthetic(lrs=(1e-4, 2e-4, 3e-4))
    maps = maps_of(source)
    assert "maximum" in maps["inferential"].title
    assert "A maximum: the best of 3 learning rates" in maps["inferential"].sentence
    assert "lowest training loss" in maps["inferential-by-loss"].sentence
    cells = zip(maps["inferential"].cells, maps["inferential-by-loss"].cells, strict=True)
    for most, chosen in cells:
        assert fmean(most.seeds) == most.shown
        assert all(a >= b for a, b in zip(most.seeds, chosen.seeds, strict=True))
    assert any(
        most.shown != fmean(chosen.seeds)
        for most, chosen in zip(
            maps["inferential"].cells, maps["inferential-by-loss"].cells, strict=True
        )
    )


def test_one_learning_rate_is_told_in_the_singular():
    maps = maps_of(synthetic(lrs=(1e-4,)))
    assert "the best of 1 learning rate for" in maps["inferential"].sentence
    assert "Of 1 learning rate the" in maps["inferential-by-loss"].sentence


def test_cells_without_a_run_say_so():
    maps = maps_of(synthetic(share_done=0.2))
    waiting = [cell for cell in maps["inferential"].cells if cell.shown is None]
    assert len(waiting) == 10
    assert all(cell.spoken.endswith("no run finished yet") for cell in waiting)
    assert "finished so far" in maps["inferential"].sentence


def test_a_cell_is_said_in_one_sentence():
    cells = maps_of(synthetic())["inferential"].cells
    spoken = next(cell.spoken for cell in cells if cell.group.settings[0].endswith("0.3"))
    head, _, rest = spoken.replace("\u00a0", " ").partition(": ")
    assert head == "γ 0.3, depth 2"
    assert rest.startswith("composed (inferential) 0.")
    assert "range of 3 seeds 0." in rest
    assert "(covers 75 %)" in rest
    assert rest.endswith("seen pairs below 0.90")


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_runs_without_a_value_are_no_seeds_of_a_median(missing):
    source = synthetic()
    cells = [{**row, "inferential_accuracy": missing} for row in source.cells]
    maps = maps_of(replace(source, cells=cells))
    assert all(cell.shown is None for cell in maps["inferential"].cells)


def test_commutes_is_taken_over_fitted_runs_alone():
    source = synthetic()
    for cell in maps_of(source)["commutes"].cells:
        rows = member_rows(source, cell.group)
        fitted = [row["commutes"] for row in rows if row["fit"] == "fitted"]
        assert cell.seeds == tuple(sorted(fitted))
        assert (cell.shown is None) == (not fitted)
        assert cell.hatched or fitted


def test_one_seed_has_no_range():
    cells = maps_of(synthetic(n_seeds=1))["inferential"].cells
    assert all("one seed" in cell.spoken and "range" not in cell.spoken for cell in cells)

from __future__ import annotations

from dataclasses import replace

from initrate.report._grid import by_seed, chosen_by_training_loss, make_grid, member_rows
from initrate.report._source import Axis
from tests.report.synthetic import PHASE, synthetic


def test_two_axes_make_one_table_with_the_first_axis_across():
    grid = make_grid(synthetic())
    assert len(grid.facets) == 1
    table = grid.facets[0].groups
    assert (len(table), len(table[0])) == (3, 8)
    assert table[2][5].settings == ("γ\u00a00.8", "depth\u00a04")
    assert [group.index for group in grid.groups] == list(range(24))


def test_every_run_lies_in_the_cell_of_its_own_values():
    source = synthetic()
    for group in make_grid(source).groups:
        rows = member_rows(source, group)
        assert len(rows) == 3
        assert {f"γ {row['gamma']:.1f}, depth {row['depth']}" for row in rows} == {
            group.words.replace("\u00a0", " ")
        }


def test_a_third_axis_opens_a_table_for_each_of_its_values():
    source = synthetic(axes=(*PHASE, Axis("weight_decay", "weight_decay", (0.01, 1.0))))
    grid = make_grid(source)
    assert [f.words for f in grid.facets] == ["weight decay\u00a00.01", "weight decay\u00a01"]
    assert sum(len(group.members) for group in grid.groups) == len(source.cells)


def test_one_axis_makes_one_row_and_none_one_cell():
    one = make_grid(synthetic(axes=PHASE[:1]))
    assert one.rows is None
    assert len(one.facets[0].groups) == 1
    none = make_grid(synthetic(axes=()))
    assert [group.words for group in none.groups] == ["The one setting"]
    assert len(none.groups[0].members) == 3


def test_axis_values_are_met_despite_rounding_and_kind():
    source = synthetic(axes=(Axis("gamma", "gamma", (0.30000000000000004, 1)),))
    cells = [{**row, "gamma": round(float(str(row["gamma"])), 12)} for row in source.cells]
    grid = make_grid(replace(source, cells=cells))
    assert [len(group.members) for group in grid.groups] == [3, 3]


def test_words_may_be_axis_values():
    source = synthetic(axes=(Axis("activation", "activation", ("relu", "gelu")),))
    grid = make_grid(source)
    assert [group.words for group in grid.groups] == [
        "activation\u00a0relu",
        "activation\u00a0gelu",
    ]
    assert all(len(group.members) == 3 for group in grid.groups)


def test_an_unfinished_study_has_empty_cells():
    grid = make_grid(synthetic(share_done=0.2))
    assert len(grid.groups) == 24
    assert {len(group.members) for group in grid.groups} == {0, 1}


def test_the_chosen_learning_rate_has_the_lowest_training_loss():
    source = synthetic(lrs=(1e-4, 2e-4, 3e-4))
    for group in make_grid(source).groups:
        for members, chosen in zip(
            by_seed(source, group), chosen_by_training_loss(source, group), strict=True
        ):
            assert len(members) == 3
            rows = [source.cells[member] for member in members]
            losses = [r["final_training_loss"] for r in rows if not r["diverged"]]
            if not losses:
                continue
            assert source.cells[chosen]["final_training_loss"] == min(losses)


def test_a_diverged_run_is_chosen_only_where_no_other_is_left():
    source = synthetic(axes=(), n_seeds=1, lrs=(1e-4, 2e-4))
    cells = [dict(row) for row in source.cells]
    cells[0] |= {"final_training_loss": 0.0, "diverged": True}
    source = replace(source, cells=cells)
    (group,) = make_grid(source).groups
    assert chosen_by_training_loss(source, group) == [1]


def test_a_seed_counts_once_all_its_learning_rates_are_trained():
    source = synthetic(axes=(), n_seeds=2, lrs=(1e-4, 2e-4, 3e-4))
    (group,) = make_grid(replace(source, cells=source.cells[:4])).groups
    assert by_seed(source, group) == [[0, 1, 2]]

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initrate.report import _payload
from initrate.report._grid import make_grid
from initrate.report._payload import payload, script_json
from tests.report.synthetic import synthetic


@given(st.recursive(st.none() | st.booleans() | st.text(), st.lists, max_leaves=8))
def test_nothing_in_the_data_can_end_its_script_element(content):
    text = script_json(content)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == content


def test_numbers_that_json_has_not_are_refused():
    with pytest.raises(ValueError, match="Out of range"):
        script_json(math.nan)


def test_the_data_round_trips_and_has_every_run():
    source = synthetic(mirrored=True)
    data = json.loads(script_json(payload(source, make_grid(source))))
    assert len(data["runs"]) == len(data["curves"]) == len(data["positions"]) == 72
    assert sorted(run for group in data["groups"] for run in group["runs"]) == list(range(72))
    assert len(data["curves"][0]["step"]) == 21
    assert data["csv"]["cell"] == [row["cell"] for row in source.cells]


def test_a_diverged_curve_has_gaps_and_no_invented_numbers():
    source = synthetic()
    diverged = next(i for i, row in enumerate(source.cells) if row["diverged"])
    data = payload(source, make_grid(source))
    losses = data["curves"][diverged]["training_loss"]  # pyright: ignore
    assert losses[-1] is None
    assert losses[0] is not None


def test_commutes_of_a_run_that_is_not_fitted_is_no_finding():
    source = synthetic()
    data = payload(source, make_grid(source))
    for run, row in zip(data["runs"], source.cells, strict=True):  # pyright: ignore
        assert (run["commutes"] is None) == (row["fit"] != "fitted")
    # The table to save keeps every number as it was stored.
    assert data["csv"]["commutes"] == [row["commutes"] for row in source.cells]  # pyright: ignore


def test_each_cell_says_how_far_its_seeds_spread():
    source = synthetic(axes=(), n_seeds=3)
    (group,) = payload(source, make_grid(source))["groups"]  # pyright: ignore
    assert group["spread"].endswith("(covers 75 %)")


def test_long_curves_are_thinned_and_say_so(monkeypatch):
    monkeypatch.setattr(_payload, "MOST_NUMBERS", 72 * len(_payload.CURVES) * 10)
    monkeypatch.setattr(_payload, "_LEAST_POINTS", 5)
    source = synthetic()
    data = payload(source, make_grid(source))
    assert data["thinned"] == 3
    # The last step stays, whatever is thinned.
    assert data["curves"][0]["step"] == [0, 150, 300, 450, 600, 750, 900, 1000]  # pyright: ignore


def test_the_cell_chosen_at_first_is_where_seeds_differ_most():
    source = synthetic()
    grid = make_grid(source)

    def spread(group):
        found = [source.cells[run]["inferential_accuracy"] for run in group.members]
        return max(found) - min(found)

    assert payload(source, grid)["start"] == max(grid.groups, key=spread).index

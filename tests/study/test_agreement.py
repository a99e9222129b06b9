"""Labels that change with the plan, counted beside those that change with the seed."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from initrate.errors import InputError
from initrate.study import Store, StudyConfig, Thresholds, agreement, override, relabel, run
from tests.study import standin


def test_a_study_agrees_with_itself(store: Store) -> None:
    found = agreement(store, store)
    assert (found.n_cells, found.changed, found.share) == (16, 0, 0.0)
    # Two seeds at each of eight points: one pair a point.
    assert found.n_seed_pairs == 8
    by_point = store.cells().group_by("gamma", "depth").agg(pl.col("label").n_unique())
    assert found.changed_between_seeds == (by_point["label"] > 1).sum()


def test_labels_that_differ_are_counted(store: Store, tmp_path: Path) -> None:
    other = Store.open(shutil.copytree(store.path, tmp_path / "other"))
    other = relabel(other, Thresholds(trained=0.9999, share=0.99))
    before, after = (dict(s.cells().select("cell", "label").iter_rows()) for s in (store, other))
    expected = sum(before[cell] != after[cell] for cell in before)
    assert expected > 0
    assert agreement(store, other).changed == expected
    assert agreement(store, other).share == expected / 16


def test_cells_that_one_study_lacks_do_not_count(
    store: Store, config: StudyConfig, tmp_path: Path
) -> None:
    half = run(override(config, {"depth": 1}), tmp_path / "half", threads=1, train=standin.train)
    found = agreement(store, half)
    assert (found.n_cells, found.changed, found.n_seed_pairs) == (8, 0, 4)


def test_studies_without_a_common_cell_are_refused(
    store: Store, config: StudyConfig, tmp_path: Path
) -> None:
    other = run(override(config, {"steps": 10}), tmp_path / "other", threads=1, train=standin.train)
    with pytest.raises(InputError, match="share no trained cell"):
        agreement(store, other)

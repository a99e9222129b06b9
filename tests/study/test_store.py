"""The store: tables, weights, labels."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import load_file

from initrate.errors import InputError, StoreError
from initrate.model import tensor_specs
from initrate.study import (
    Store,
    StudyConfig,
    StudyStarted,
    Thresholds,
    cells,
    grid,
    label,
    load_study,
    relabel,
    run,
)
from initrate.study._tables import COLUMNS
from tests.study import standin


def test_a_row_a_cell(store: Store, config: StudyConfig) -> None:
    table = store.cells()
    points = {point.id: point for point in grid(config)}
    assert sorted(table["cell"]) == sorted(points)
    for row in table.to_dicts():
        point = points[row["cell"]]
        assert (row["gamma"], row["depth"], row["seed"]) == (*point.axes.values(), point.seed)
        assert (row["lr"], row["steps"], row["seed_init"]) == (0.001, 20, point.seed)
        assert row["gamma_by_role"] == "{}" and row["variant"] == "34-wrong"
        assert (row["fit"], row["label"]) == label(row)
    assert set(COLUMNS["cells"]) <= set(table.columns)


def test_final_best_and_step_of_best_are_kept_apart(store: Store, config: StudyConfig) -> None:
    for row in store.cells().to_dicts():
        curve = store.curves(row["cell"])
        assert curve["step"].to_list() == [0, 5, 10, 15, 20]
        answers = curve["inferential_accuracy"].to_list()
        assert row["final_inferential_accuracy"] == answers[-1]
        assert row["best_inferential_accuracy"] == max(answers)
        assert row["best_step"] == [0, 5, 10, 15, 20][answers.index(max(answers))]
        assert row["final_probe_accuracy"] is None
        assert row["floor_no_input"] == pytest.approx(4.52, abs=0.01)
        assert row["at_floor"] is False


def test_final_is_the_mean_of_the_last_tenth(config: StudyConfig, tmp_path: Path) -> None:
    long = replace(
        config,
        axes={"gamma": (0.5,)},
        seeds=(1,),
        training=replace(config.training, steps=199, log_every=10),
    )
    store = run(long, tmp_path / "s", threads=1, train=standin.train)
    curve, row = store.curves(), store.cells().to_dicts()[0]
    assert curve.height == 20
    last = curve["inferential_accuracy"].to_list()[-2:]
    assert row["final_inferential_accuracy"] == pytest.approx(sum(last) / 2)


def test_roles_that_differ_have_no_one_gamma(config: StudyConfig, tmp_path: Path) -> None:
    by_role = replace(config, axes={"gamma_qk": (0.5, 0.9)}, seeds=(1,))
    rows = run(by_role, tmp_path / "s", threads=1, train=standin.train).cells().to_dicts()
    assert [row["gamma"] for row in rows] == [0.5, None]
    assert [row["gamma_qk"] for row in rows] == [0.5, 0.9]
    assert rows[0]["gamma_by_role"] == "{}"
    assert json.loads(rows[1]["gamma_by_role"])["qk"] == 0.9


def test_weights(store: Store, config: StudyConfig) -> None:
    by_id = {cell.id: cell for cell in cells(config)}
    for name in store.cells()["cell"].to_list()[:3]:
        weights = store.weights(name)
        specs = {spec.name: spec for spec in tensor_specs(by_id[name].model, 128)}
        assert {key: tensor.shape for key, tensor in weights.items()} == {
            key: spec.shape for key, spec in specs.items()
        }
    first, second = (store.weights(name) for name in store.cells()["cell"].to_list()[:2])
    key = "token_embedding.weight"
    assert not np.array_equal(first[key], second[key])
    with pytest.raises(InputError, match="unknown cell"):
        store.weights("ffffffffffff")


@pytest.mark.parametrize("given", [np.array(["a", "b"]), np.eye(9), 5, ["a"], {}])
def test_what_is_no_id_is_refused(store: Store, given: Any) -> None:
    with pytest.raises(InputError, match="unknown cell"):
        store.weights(given)
    with pytest.raises(InputError, match=r"bucket is .*: expected the id of a bucket"):
        store.cells(given)
    for table in (store.curves, store.counts, store.shifts, store.tensors):
        with pytest.raises(InputError, match=r"cell is .*: expected the id of a cell") as caught:
            table(given)
        assert "\n" not in str(caught.value)


def test_other_tables(store: Store) -> None:
    assert store.counts().columns == list(COLUMNS["counts"])
    assert store.shifts().height == store.tensors().height == 16
    assert store.counts(store.cells()["cell"][0]).height == 1
    timing = store.timing()
    assert timing["seconds"].to_list() == [1.5] * 4 and timing["session"].to_list() == [1] * 4
    assert (store.status, store.progress()) == ("done", (16, 16))


def test_plain_tools_can_read_it(store: Store) -> None:
    """Each file is what its name says, without initrate."""
    index = pl.read_parquet(store.path / "cells.parquet")
    assert index.equals(store.cells())
    parts = pl.read_parquet(store.path / "parts" / "*" / "curves.parquet")
    assert parts.height == 16 * 5
    for part in store.parts().values():
        weights = load_file(part.folder / "weights.safetensors")
        assert {tensor.shape[0] for tensor in weights.values()} == {4}
        manifest = json.loads((part.folder / "manifest.json").read_text())
        for name, known in manifest["sha256"].items():
            assert hashlib.sha256((part.folder / name).read_bytes()).hexdigest() == known
    assert load_study(store.path / "study.toml") == store.config


def test_the_index_may_be_deleted(store: Store) -> None:
    (store.path / "cells.parquet").unlink()
    assert Store.open(store.path).cells().height == 16


def test_host_and_date_stand_in_their_own_place_alone(store: Store) -> None:
    session = store.sessions[0]
    for file in store.path.rglob("*"):
        own = file.name == "environment.json" or "timing" in file.parts
        if file.is_file() and not own:
            text = file.read_bytes()
            assert str(session["began"]).encode() not in text
            assert str(session["began"])[:10].encode() not in text


def test_a_study_without_parts(config: StudyConfig, tmp_path: Path) -> None:
    def none_yet(event: object) -> None:
        store = Store.open(tmp_path / "s")
        if not store.progress()[0]:
            assert store.cells().height == store.curves().height == store.timing().height == 0
            assert set(COLUMNS["cells"]) <= set(store.cells().columns)
            assert store.summary() == []

    run(config, tmp_path / "s", threads=1, train=standin.train, on_event=none_yet)


def test_relabel(store: Store) -> None:
    before = store.cells()["label"].to_list()
    again = relabel(store, Thresholds(share=0.9))
    assert Store.open(store.path).thresholds.share == 0.9
    labels = Store.open(store.path).cells()["label"].to_list()
    assert again.cells()["label"].to_list() == labels != before
    assert pl.read_parquet(store.path / "cells.parquet")["label"].to_list() == labels
    assert relabel(again).cells()["label"].to_list() == before
    with pytest.raises(InputError, match="unknown threshold"):
        relabel(store, {"shares": 0.9})


def test_relabel_waits_for_a_running_process(config: StudyConfig, tmp_path: Path) -> None:
    def meanwhile(event: object) -> None:
        if isinstance(event, StudyStarted):
            with pytest.raises(StoreError, match="wait for it"):
                relabel(Store.open(tmp_path / "s"))

    run(config, tmp_path / "s", threads=1, train=standin.train, on_event=meanwhile)

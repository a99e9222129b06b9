"""A study folder that someone changed with care: pipes, links, adjusted checksums, odd types."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from initrate.errors import InputError, StoreError
from initrate.study import Store, StudyConfig, StudyStarted, label, prospect, run
from initrate.study import _begin as begin_module
from initrate.study._tables import parquet
from initrate.tasks import AnchorTask, task_from_dict
from initrate.training._checkpoint import load_checkpoint
from tests.study import standin

Spoil = Callable[[Path], object]
HEX = "0123456789abcdef"


def _rewrite(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def _part(folder: Path) -> Path:
    return sorted((folder / "parts").iterdir())[0]


def _replaced(file: Path, make: Callable[[Path], object]) -> None:
    file.unlink(missing_ok=True)
    make(file)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (os.mkfifo, "not a plain file"),
        (Path.mkdir, "is a folder"),
        (lambda p: p.symlink_to("/dev/zero"), "is a link"),
        (lambda p: p.symlink_to(p.parent / "nowhere"), "is a link to nothing"),
    ],
)
def test_a_checkpoint_that_is_no_plain_file(
    make: Callable[[Path], object], says: str, tmp_path: Path
) -> None:
    make(tmp_path / "x.checkpoint")
    with pytest.raises(StoreError, match=f"{says}.*remove it, and its bucket starts anew"):
        load_checkpoint(tmp_path / "x.checkpoint", bucket="x")


@pytest.mark.parametrize("kind", [os.mkfifo, Path.mkdir])
@pytest.mark.parametrize(
    "name", ["study.json", "study.toml", "execution.json", "environment.json", "timing", "part"]
)
def test_a_pipe_or_a_folder_in_place_of_a_file_is_not_waited_for(
    store: Store, config: StudyConfig, kind: Callable[[Path], object], name: str
) -> None:
    file = {
        "timing": sorted((store.path / "timing").iterdir())[0],
        "part": _part(store.path) / "cells.parquet",
    }.get(name, store.path / name)
    _replaced(file, kind)
    with pytest.raises(StoreError) as caught:
        again = Store.open(store.path)
        again.cells()
        again.timing()
        assert again.sessions == []
    assert str(store.path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_lock_that_is_a_pipe_is_not_waited_for(store: Store) -> None:
    shutil.rmtree(_part(store.path))
    _replaced(store.path / "running" / "lock", os.mkfifo)
    assert Store.open(store.path).status == "unfinished"


@pytest.mark.parametrize("name", ["study.json", "execution.json", "PART/cells.parquet"])
def test_a_link_in_place_of_a_file_is_called_one(store: Store, name: str) -> None:
    file = store.path / name.replace("PART", str(_part(store.path)))
    target = store.path.parent / "elsewhere"
    file.rename(target)
    file.symlink_to(target)
    with pytest.raises(StoreError, match="is a link: expected a plain file"):
        Store.open(store.path).cells()
    target.unlink()
    with pytest.raises(StoreError, match="is a link to nothing"):
        Store.open(store.path).cells()


@pytest.mark.parametrize("kind", ["a link to nothing", "a loop of links"])
def test_a_folder_that_is_a_link_is_called_one(
    kind: str, config: StudyConfig, tmp_path: Path
) -> None:
    place = tmp_path / "s"
    place.symlink_to(place if kind == "a loop of links" else tmp_path / "nowhere")
    for attempt in (
        lambda: Store.open(place),
        lambda: run(config, place, train=standin.train),
        lambda: prospect(config, place),
    ):
        with pytest.raises(StoreError, match=kind):
            attempt()


def test_only_its_own_unfinished_files_are_removed(store: Store, config: StudyConfig) -> None:
    mine = [store.path / n for n in (".notes.partial", f".a.{HEX}.partialx", f".{HEX}.partial")]
    mine += [store.path / "running" / ".b.0123.partial", store.path / "timing" / ".B.partial"]
    ours = [store.path / f".study.json.{HEX}.partial", store.path / "running" / f".x.{HEX}.partial"]
    for file in (*mine, *ours):
        file.write_text("x")
    run(config, store.path, train=standin.train)
    assert all(file.exists() for file in mine)
    assert not any(file.exists() for file in ours)


def test_what_a_killed_start_left_beside_the_folder_is_cleared(
    config: StudyConfig, tmp_path: Path
) -> None:
    def left(name: str, *, lock: bool, age: float = 0.0) -> Path:
        folder = tmp_path / name
        (folder / "running").mkdir(parents=True)
        if lock:
            (folder / "running" / "lock").touch()
        os.utime(folder, (time.time() - age, time.time() - age))
        return folder

    dead = [
        left(f".s.{HEX}.partial", lock=True),
        left(f".s.{HEX[::-1]}.partial", lock=False, age=3600),
    ]
    kept = [
        left(f".s.{'1' * 16}.partial", lock=False),
        left(f".other.{HEX}.partial", lock=True),
        left(".s.partial", lock=True),
        left(f".s.{'2' * 16}.partial", lock=True),
        left(f".s.{'3' * 16}.partial", lock=True),
    ]
    (kept[4] / "thesis.txt").write_text("mine")
    with (kept[3] / "running" / "lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        run(config, tmp_path / "s", train=standin.train)
    assert not any(folder.exists() for folder in dead)
    assert all(folder.exists() for folder in kept)


def test_a_start_that_another_one_overtook_goes_on(
    config: StudyConfig, trained_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "s"
    fill = begin_module._folder.fill

    def overtaken(folder: Path, *rest: Any) -> None:
        fill(folder, *rest)
        if not place.exists():
            shutil.copytree(trained_once, place)

    monkeypatch.setattr(begin_module._folder, "fill", overtaken)
    store = run(config, place, threads=2, train=standin.train)
    assert store.progress() == (16, 16)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize("there", [False, True])
def test_a_second_start_at_once_is_told_who_runs_it(
    there: bool, config: StudyConfig, tmp_path: Path
) -> None:
    place = tmp_path / "s"
    if there:
        place.mkdir()
    seen: list[str] = []

    def meanwhile(event: object) -> None:
        if isinstance(event, StudyStarted):
            with pytest.raises(StoreError) as caught:
                run(config, place, train=standin.train)
            seen.append(str(caught.value))

    run(config, place, train=standin.train, on_event=meanwhile)
    assert f"is being run by process {os.getpid()}" in seen[0]


def test_a_start_cut_off_in_an_empty_folder_begins_anew(
    config: StudyConfig, tmp_path: Path
) -> None:
    place = tmp_path / "s"
    (place / "running").mkdir(parents=True)
    (place / "running" / "lock").touch()
    (place / "parts").mkdir()
    (place / "study.toml").write_text("half")
    assert run(config, place, train=standin.train).progress() == (16, 16)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "study.toml").write_text("my study")
    with pytest.raises(StoreError, match="half-written"):
        run(config, mine, train=standin.train)
    assert (mine / "study.toml").read_text() == "my study"


@pytest.mark.parametrize("content", [b"", b"cut", None])
def test_damaged_weights_are_no_finished_part(
    store: Store, config: StudyConfig, content: bytes | None
) -> None:
    file = _part(store.path) / "weights.safetensors"
    data = file.read_bytes()
    file.write_bytes(os.urandom(len(data)) if content is None else content)
    for attempt in (
        lambda: run(config, store.path, train=standin.train),
        lambda: Store.open(store.path).weights(Store.open(store.path).cells()["cell"][0]),
    ):
        with pytest.raises(StoreError, match=r"weights\.safetensors was changed since"):
            attempt()


def _adjusted(folder: Path, name: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    """Change a table of the first part, and its checksum with it."""
    part = _part(folder)
    data = parquet(change(pl.read_parquet(part / f"{name}.parquet")))
    (part / f"{name}.parquet").write_bytes(data)
    known = hashlib.sha256(data).hexdigest()
    _rewrite(part / "manifest.json", lambda m: m["sha256"].update({f"{name}.parquet": known}))


def _col(name: str, found: Any) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda table: table.with_columns(found.alias(name))


TABLES: list[tuple[str, Callable[[pl.DataFrame], pl.DataFrame], str]] = [
    ("cells", _col("gamma", pl.lit("a")), "String in its column 'gamma'"),
    ("cells", _col("depth", pl.lit(1.5)), "Float64 in its column 'depth'"),
    ("cells", _col("n_unseen", pl.lit("x")), "column 'n_unseen'"),
    ("cells", _col("diverged", pl.lit(0)), "column 'diverged'"),
    ("cells", _col("seen_accuracy", pl.lit([1.0])), "List"),
    ("cells", _col("extra", pl.lit(None)), "Null in its column 'extra'"),
    ("cells", _col("cell", pl.lit(None, dtype=pl.String)), "nothing in a row of its column 'cell'"),
    ("cells", _col("diverged", pl.lit(None, dtype=pl.Boolean)), "nothing in a row"),
    ("cells", _col("cell", pl.lit("another")), "other cells"),
    ("cells", lambda t: t.head(2), "other cells"),
    ("cells", _col("gamma", pl.lit(0.77)), "0.77 in its column 'gamma'"),
    ("cells", _col("gamma", pl.lit(None, dtype=pl.Float64)), "None in its column 'gamma'"),
    (
        "cells",
        _col("unseen_composed", pl.lit(10**6, dtype=pl.Int64)),
        "more in its column 'unseen_composed'",
    ),
    ("curves", _col("step", pl.lit("x")), "column 'step'"),
    ("curves", _col("step", pl.lit(None, dtype=pl.Int64)), "nothing in a row"),
    ("curves", _col("cell", pl.lit("another")), "other cells"),
    ("counts", _col("n", pl.lit("x")), "column 'n'"),
    ("counts", _col("split", pl.lit(3)), "column 'split'"),
    ("shifts", _col("shift", pl.lit(0.5)), "column 'shift'"),
    ("tensors", _col("tensor", pl.lit(None, dtype=pl.String)), "nothing in a row"),
]


@pytest.mark.parametrize(("name", "change", "says"), TABLES)
def test_a_table_of_other_types_though_its_checksum_fits(
    store: Store, name: str, change: Callable[[pl.DataFrame], pl.DataFrame], says: str
) -> None:
    _adjusted(store.path, name, change)
    with pytest.raises(StoreError, match=says) as caught:
        getattr(Store.open(store.path), name)()
    assert "\n" not in str(caught.value) and f"{name}.parquet" in str(caught.value)


def test_timing_of_other_types(store: Store) -> None:
    file = sorted((store.path / "timing").iterdir())[0]
    file.write_bytes(parquet(pl.read_parquet(file).with_columns(pl.lit("x").alias("seconds"))))
    with pytest.raises(StoreError, match="column 'seconds'"):
        store.timing()


JSON: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    ("study.json", lambda s: s.update(schema=True), "schema True"),
    ("study.json", lambda s: s.update(schema=1.0), "schema 1.0"),
    ("study.json", lambda s: s.update(initrate=5), "initrate 5: expected a text"),
    ("study.json", lambda s: s.update(config_sha256=None), "config_sha256 None"),
    ("study.json", lambda s: s.update(config_sha256="0" * 64), "config_sha256 of another study"),
    ("execution.json", lambda p: p.update(tf32="no"), "tf32 'no'"),
    ("execution.json", lambda p: p.update(threads=True), "threads is True"),
    ("execution.json", lambda p: p.update(dtype=["float32"]), "dtype"),
    ("execution.json", lambda p: p.update(device=3), "device is 3"),
    ("execution.json", lambda p: p["buckets"][0].update(id="../../x"), "expected a bucket"),
    ("execution.json", lambda p: p["buckets"][0].update(cells=[]), "expected a bucket"),
    ("execution.json", lambda p: p["buckets"].append(p["buckets"][0]), "a bucket twice"),
]


@pytest.mark.parametrize(("name", "change", "says"), JSON)
def test_a_field_of_another_type(
    store: Store, name: str, change: Callable[[dict[str, Any]], object], says: str
) -> None:
    _rewrite(store.path / name, change)
    if name == "execution.json":
        known = hashlib.sha256((store.path / name).read_bytes()).hexdigest()
        _rewrite(store.path / "study.json", lambda s: s["sha256"].update({name: known}))
    with pytest.raises(StoreError, match=says) as caught:
        Store.open(store.path)
    assert "\n" not in str(caught.value) and str(store.path / name) in str(caught.value)


def test_a_manifest_with_a_truth_value_for_its_schema(store: Store) -> None:
    _rewrite(_part(store.path) / "manifest.json", lambda m: m.update(schema=True))
    with pytest.raises(StoreError, match="schema is True"):
        Store.open(store.path).cells()


def test_a_part_that_may_not_be_read_is_not_to_be_removed(
    store: Store, config: StudyConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refuse(path: Any, *rest: Any, **options: Any) -> int:
        if str(path).endswith("weights.safetensors"):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *rest, **options)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StoreError, match="Permission denied; restore it, or give") as caught:
        run(config, store.path, train=standin.train)
    assert "remove" not in str(caught.value)


def test_arrays_in_place_of_words_are_input_errors(store: Store, config: StudyConfig) -> None:
    array: Any = np.array(["a", "b"])
    for attempt in (
        lambda: run(config, store.path, on_error=array),
        lambda: run(config, store.path, dtype=array),
        lambda: run(config, store.path, device=array),
        lambda: StudyConfig(name="s", task=config.task, protocol=array),
        lambda: task_from_dict({"variant": array}),
        lambda: AnchorTask(split_modulus=array),
    ):
        with pytest.raises(InputError):
            attempt()
    assert label({"training_accuracy": 0.1}).label == "not_trained"

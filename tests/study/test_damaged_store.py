"""A study folder that is not what it should be: one line, and nothing used silently."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from initrate.errors import InputError, StoreError
from initrate.study import (
    Store,
    StudyConfig,
    load_study,
    relabel,
    run,
)
from tests.study import standin

Spoil = Callable[[Path], object]


def _rewrite(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def _part(folder: Path) -> Path:
    return sorted((folder / "parts").iterdir())[0]


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def _flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))


OPENING: list[tuple[str, Spoil, str]] = [
    ("no study.json", lambda f: (f / "study.json").unlink(), "half-written study: study.json"),
    ("no study.toml", lambda f: (f / "study.toml").unlink(), "half-written study: study.toml"),
    ("no plan", lambda f: (f / "execution.json").unlink(), "half-written study: execution.json"),
    ("cut study.json", lambda f: _cut(f / "study.json"), "study.json is not JSON"),
    ("list", lambda f: (f / "study.json").write_text("[]"), "no table"),
    ("empty", lambda f: (f / "study.json").write_text(""), "not JSON"),
    ("cut study.toml", lambda f: _cut(f / "study.toml"), "study.toml was changed"),
    ("tampered study.toml", lambda f: _flip(f / "study.toml"), "study.toml was changed"),
    ("tampered plan", lambda f: _flip(f / "execution.json"), "execution.json was changed"),
    (
        "schema",
        lambda f: _rewrite(f / "study.json", lambda s: s.update(schema=2)),
        "schema 2: expected 1",
    ),
    (
        "hashes",
        lambda f: _rewrite(f / "study.json", lambda s: s.pop("sha256")),
        "study.toml was changed",
    ),
    (
        "thresholds",
        lambda f: _rewrite(f / "study.json", lambda s: s.update(thresholds=3)),
        "no thresholds",
    ),
    (
        "threshold",
        lambda f: _rewrite(f / "study.json", lambda s: s["thresholds"].update(share=2)),
        "study.json: threshold share is 2",
    ),
    (
        "a threshold less",
        lambda f: _rewrite(f / "study.json", lambda s: s["thresholds"].pop("level")),
        "study.json lacks the threshold level",
    ),
    (
        "unknown threshold",
        lambda f: _rewrite(f / "study.json", lambda s: s["thresholds"].update(shar=0.5)),
        "study.json: unknown threshold 'shar'",
    ),
    ("no parts", lambda f: shutil.rmtree(f / "parts"), "has lost its folder parts"),
    (
        "parts a file",
        lambda f: (shutil.rmtree(f / "parts"), (f / "parts").write_text("")),
        "is a file",
    ),
]


def _lock(folder: Path) -> Path:
    lock = folder / "running" / "lock"
    lock.unlink()
    return lock


READING: list[tuple[str, Spoil, str]] = [
    ("no manifest", lambda f: (_part(f) / "manifest.json").unlink(), "no manifest.json"),
    ("cut manifest", lambda f: _cut(_part(f) / "manifest.json"), "not JSON"),
    ("manifest a list", lambda f: (_part(f) / "manifest.json").write_text("[]"), "schema is None"),
    (
        "manifest of others",
        lambda f: _rewrite(_part(f) / "manifest.json", lambda m: m.update(cells=["a"])),
        "other cells than planned",
    ),
    (
        "manifest of another bucket",
        lambda f: _rewrite(_part(f) / "manifest.json", lambda m: m.update(bucket="x")),
        "of bucket 'x'",
    ),
    (
        "file outside",
        lambda f: _rewrite(
            _part(f) / "manifest.json", lambda m: m.update(sha256={"../../study.toml": ""})
        ),
        "its manifest names",
    ),
    ("no table", lambda f: (_part(f) / "cells.parquet").unlink(), "cells.parquet is missing"),
    ("no weights", lambda f: (_part(f) / "weights.safetensors").unlink(), "weights.safetensors"),
    ("cut table", lambda f: _cut(_part(f) / "cells.parquet"), "cells.parquet was changed"),
    ("tampered table", lambda f: _flip(_part(f) / "cells.parquet"), "cells.parquet was changed"),
    ("foreign part", lambda f: (f / "parts" / "mine").mkdir(), "is no part of this study"),
    ("foreign file", lambda f: (f / "parts" / "notes.txt").write_text(""), "is no part of this"),
    ("renamed part", lambda f: _part(f).rename(f / "parts" / "0009-00000000"), "is no part of"),
]


@pytest.mark.parametrize(("spoil", "says"), [e[1:] for e in OPENING], ids=[e[0] for e in OPENING])
def test_a_folder_that_does_not_open(
    store: Store, config: StudyConfig, spoil: Spoil, says: str
) -> None:
    spoil(store.path)
    before = _all_bytes(store.path)
    for attempt in (
        lambda: Store.open(store.path),
        lambda: run(config, store.path, train=standin.train),
    ):
        with pytest.raises(InputError, match=says) as caught:
            attempt()
        assert "\n" not in str(caught.value)
    assert _all_bytes(store.path) == before


@pytest.mark.parametrize(("spoil", "says"), [e[1:] for e in READING], ids=[e[0] for e in READING])
def test_a_part_that_is_not_what_was_written(
    store: Store, config: StudyConfig, spoil: Spoil, says: str
) -> None:
    spoil(store.path)
    before = _all_bytes(store.path / "parts")
    for attempt in (
        lambda: Store.open(store.path).cells(),
        lambda: run(config, store.path, train=standin.train),
    ):
        with pytest.raises(StoreError, match=says) as caught:
            attempt()
        assert "\n" not in str(caught.value) and str(store.path) in str(caught.value)
    assert _all_bytes(store.path / "parts") == before


def test_other_files_of_a_part_are_checked_when_they_are_read(store: Store) -> None:
    part = _part(store.path)
    for name, read in [
        ("curves.parquet", store.curves),
        ("counts.parquet", store.counts),
        ("shifts.parquet", store.shifts),
        ("tensors.parquet", store.tensors),
        ("weights.safetensors", lambda: store.weights(store.cells()["cell"][0])),
    ]:
        _flip(part / name)
        with pytest.raises(StoreError, match=f"{part.name}.*{name} was changed"):
            read()
    assert store.cells().height == 16


def test_a_table_that_is_none_though_its_checksum_fits(store: Store) -> None:
    for content, says in [(b"no table", "not a Parquet table"), (_other_table(), "lacks the col")]:
        part = _part(store.path)
        (part / "cells.parquet").write_bytes(content)
        known = hashlib.sha256(content).hexdigest()
        _rewrite(
            part / "manifest.json", lambda m, k=known: m["sha256"].update({"cells.parquet": k})
        )
        with pytest.raises(StoreError, match=says):
            Store.open(store.path).cells()


def _other_table() -> bytes:
    from initrate.study._tables import frame, parquet

    return parquet(frame([{"a": 1}], ("a",)))


def test_weights_that_are_none_though_their_checksum_fits(store: Store) -> None:
    part = _part(store.path)
    (part / "weights.safetensors").write_bytes(b"no weights at all")
    known = hashlib.sha256(b"no weights at all").hexdigest()
    _rewrite(part / "manifest.json", lambda m: m["sha256"].update({"weights.safetensors": known}))
    with pytest.raises(StoreError, match="no weights of cell"):
        Store.open(store.path).weights(store.cells()["cell"][0])


def test_a_part_that_was_removed_is_trained_again(
    store: Store, config: StudyConfig, trained_once: Path
) -> None:
    part = _part(store.path)
    shutil.rmtree(part)
    assert Store.open(store.path).status == "unfinished"
    run(config, store.path, train=standin.train)
    assert _all_bytes(part) == _all_bytes(trained_once / "parts" / part.name)


def test_timing_that_is_damaged(store: Store) -> None:
    next((store.path / "timing").iterdir()).write_text("no table")
    with pytest.raises(StoreError, match="not a Parquet table"):
        store.timing()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda p: p.write_text("mine"), "is a file"),
        (lambda p: (p.mkdir(), (p / "notes.txt").write_text("mine")), "holds no study"),
        (lambda p: p.symlink_to(p.parent / "nowhere"), "link to nothing"),
        (lambda p: (p.mkdir(), (p / "study.json").write_text("{}")), "half-written study"),
    ],
)
def test_a_place_that_is_taken(
    config: StudyConfig, tmp_path: Path, make: Callable[[Path], object], says: str
) -> None:
    place = tmp_path / "taken"
    make(place)
    before = _all_bytes(tmp_path)
    with pytest.raises(StoreError, match=says) as caught:
        run(config, place, train=standin.train)
    assert "\n" not in str(caught.value) and _all_bytes(tmp_path) == before


@pytest.mark.parametrize(
    ("make", "kind"),
    [(Path.mkdir, "folder"), (lambda p: p.symlink_to(p.parent / "none"), "link")],
)
def test_a_lock_that_is_no_file(
    store: Store, config: StudyConfig, make: Callable[[Path], object], kind: str
) -> None:
    make(_lock(store.path))
    for attempt in (lambda: run(config, store.path, train=standin.train), lambda: relabel(store)):
        with pytest.raises(StoreError, match=f"lock is a {kind}: .*remove it"):
            attempt()
    assert not (store.path / "running" / "none").exists()


def test_parts_that_are_lost_while_a_store_is_open(store: Store) -> None:
    shutil.rmtree(store.path / "parts")
    with pytest.raises(StoreError, match=r"cannot read .*parts: No such file"):
        store.cells()


@pytest.mark.parametrize("locked", [".", "parts", "parts/PART", "timing"])
def test_what_may_not_be_read(store: Store, locked: str) -> None:
    """A child process without the rights of root says one line."""
    place = store.path / locked.replace("PART", _part(store.path).name)
    for folder in (store.path, *store.path.parents):
        if folder.is_relative_to(Path(tempfile.gettempdir())):
            folder.chmod(folder.stat().st_mode | 0o055)
    place.chmod(0)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.study.unreadable", str(store.path)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
    finally:
        place.chmod(0o755)
    assert done.returncode == 2, done.stderr
    assert done.stdout.count("\n") == 1 and str(place) in done.stdout
    assert "ermission denied" in done.stdout or "is missing" in done.stdout


@pytest.mark.parametrize("given", [5, None, [], "", "a\0b"])
def test_what_is_no_path(config: StudyConfig, given: Any) -> None:
    for attempt in (lambda: Store.open(given), lambda: run(config, given, train=standin.train)):
        with pytest.raises(InputError, match="expected a path"):
            attempt()


def test_other_types_are_input_errors(store: Store, config: StudyConfig) -> None:
    wrong: Any = 5
    for attempt, says in [
        (lambda: store.curves(wrong), "cell is 5"),
        (lambda: relabel(store, wrong), "thresholds is 5"),
        (lambda: run(wrong, store.path), "the study is 5"),
        (lambda: run(config, store.path, thresholds=wrong), "thresholds is 5"),
        (lambda: load_study(wrong), "the study file is 5"),
    ]:
        with pytest.raises(InputError, match=says):
            attempt()


def test_opening_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        Store.open(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="is a file"):
        Store.open(tmp_path / "file")


def _all_bytes(folder: Path) -> dict[str, bytes]:
    """Every file but the lock, which any attempt may touch."""
    files = sorted(f for f in folder.rglob("*") if f.is_file() and f.name != "lock")
    return {str(f.relative_to(folder)): f.read_bytes() for f in files}

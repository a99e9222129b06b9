"""Bad input: one clear line, exit code 2, nothing written."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from initrate.cli import main
from tests.cli.process import one_line

SMOKE = ("phase", "--preset", "smoke", "--out", "study")

CASES = {
    "unknown command": (["phasee"], "did you mean 'phase'"),
    "unknown option": ([*SMOKE, "--gama", "0.5"], "did you mean '--gamma'"),
    "one argument too many": ([*SMOKE, "0.5"], "'0.5' is one too many"),
    "missing value": (["phase", "--gamma"], "--gamma"),
    "unknown preset": (["phase", "--preset", "laptob"], "did you mean 'laptop'"),
    "unknown task": ([*SMOKE, "--task", "34-wrog"], "did you mean '34-wrong'"),
    "unknown rule": ([*SMOKE, "--rule", "formla"], "did you mean 'formula'"),
    "unknown shape": ([*SMOKE, "--shape", "labtop"], "did you mean 'laptop'"),
    "unknown field": ([*SMOKE, "--set", "weight_decya=1"], "did you mean 'weight_decay'"),
    "unknown protocol": ([*SMOKE, "--protocol", "best_lr"], "did you mean 'best-lr'"),
    "unknown on-error": ([*SMOKE, "--on-error", "contiune"], "did you mean 'continue'"),
    "unknown names": (["list", "rulez"], "did you mean 'rules'"),
    "gamma that is a word": ([*SMOKE, "--gamma", "small"], "'small'"),
    "gamma that is not a number": ([*SMOKE, "--gamma", "nan"], "finite"),
    "gamma that is not finite": ([*SMOKE, "--gamma", "0.5,inf"], "finite"),
    "gamma that is a switch": ([*SMOKE, "--gamma", "true"], "number"),
    "range that goes nowhere": ([*SMOKE, "--gamma", "1.0:0.3:0.1"], "first value"),
    "range that misses its end": ([*SMOKE, "--gamma", "0.3:1.0:0.4"], "miss 1.0"),
    "range without end": ([*SMOKE, "--gamma", "0:1:1e-9"], "more than"),
    "gamma twice": ([*SMOKE, "--gamma", "0.5,0.5"], "twice"),
    "no gamma in the rule": ([*SMOKE, "--rule", "gpt2"], "gamma"),
    "targets outside the vocabulary": ([*SMOKE, "--set", "vocabulary=100"], "vocabulary"),
    "key range that meets the anchors": ([*SMOKE, "--set", "key_low=3"], "anchor"),
    "n too short": ([*SMOKE, "--set", "task.length=2"], "length"),
    "sizes that do not divide": (
        [*SMOKE, "--set", "positions=rotary", "--set", "d_k=7"],
        "even d_k",
    ),
    "depth zero": ([*SMOKE, "--depth", "0"], "from 1 to"),
    "depth that is a fraction": ([*SMOKE, "--depth", "2.5"], "whole number"),
    "zero steps": ([*SMOKE, "--set", "steps=0"], "steps is 0"),
    "zero seeds": ([*SMOKE, "--seeds", "0"], "seeds"),
    "seeds that are a word": ([*SMOKE, "--seeds", "many"], "'many'"),
    "negative seed": ([*SMOKE, "--seed-list", "-1"], "seed"),
    "count and list": ([*SMOKE, "--seeds", "2", "--seed-list", "1"], "one of the two"),
    "rates without the protocol": ([*SMOKE, "--lrs", "1e-3"], "best-lr"),
    "setting without a value": ([*SMOKE, "--set", "lr"], "NAME=VALUE"),
    "setting without a name": ([*SMOKE, "--set", "=3"], "NAME=VALUE"),
    "too many cells": ([*SMOKE, "--set", "lr=0.001:2:0.001", "--seeds", "999"], "cells"),
    "zero threads": ([*SMOKE, "--threads", "0"], "threads"),
    "no memory": ([*SMOKE, "--memory-limit", "0"], "memory"),
    "too little memory": ([*SMOKE, "--memory-limit", "1e-6"], "memory limit"),
    "memory beyond all bounds": ([*SMOKE, "--memory-limit", "1e308"], "--memory-limit"),
    "memory that is not a number": ([*SMOKE, "--memory-limit", "nan"], "--memory-limit"),
    "an option twice": (["phase", "--seeds", "2", "--seeds=3"], "--seeds is given twice (2 and 3)"),
    "a switch twice": (["list", "rules", "--json", "--json"], "--json is given twice"),
    "a field twice": (
        [*SMOKE, "--set", "depth=1", "--set", "n_layers=2"],
        "--set depth and --set n_layers set the same field",
    ),
    "a field twice, by its path": (
        [*SMOKE, "--set", "lr=1e-3", "--set", "training.lr=1e-4"],
        "--set lr and --set training.lr set the same field",
    ),
    "a field by two options": (
        [*SMOKE, "--gamma", "0.5", "--set", "gamma=0.9"],
        "--gamma and --set gamma set the same field",
    ),
    "a task by two options": (
        [*SMOKE, "--task", "34-wrong", "--set", "variant=without-34"],
        "--task and --set variant",
    ),
    "a rate under best-lr": (["phase", "--preset", "paper", "--set", "lr=1e-3"], "'best-lr'"),
    "a dash for a folder": (["report", "--dash"], "unknown option '--dash'"),
    "one dash": (["report", "-x"], "unknown option '-x'"),
    "no names": (["list"], "list needs one of rules, roles, presets, shapes, tasks, fields"),
    "no target": (["plan"], "initrate plan needs TARGET"),
    "no value at the end": ([*SMOKE, "--gamma"], "--gamma has no value"),
    "no value before another": ([*SMOKE, "--gamma", "--json"], "--gamma has no value"),
    "a long name": (["report", "a" * 300], "too long a name (300 characters)"),
    "a long path": ([*SMOKE[:3], "--out", "a/" * 4000], "too long a name"),
    "a long place for a report": (["report", "--demo", "--out", "a" * 300], "too long a name"),
    "a name not in UTF-8": (["report", "a\udcff"], "is not UTF-8"),
    "a place not in UTF-8": ([*SMOKE[:3], "--out", "a\udcff"], "is not UTF-8"),
    "zero threads, dry": ([*SMOKE, "--dry-run", "--threads", "0"], "threads is 0"),
    "too little memory, dry": ([*SMOKE, "--dry-run", "--memory-limit", "1e-6"], "memory limit"),
    "no such device, dry": ([*SMOKE, "--dry-run", "--device", "gpu"], "device is 'gpu'"),
    "None as a folder": (["report", "None"], "./None"),
    "None after an option": ([*SMOKE, "--gamma", "None"], "--gamma is 'None'"),
    "empty folder": (["phase", "--preset", "smoke", "--out", ""], "--out is empty"),
    "neither file nor preset": (["run"], "one of the two"),
    "file and preset": (["run", "study.toml", "--preset", "smoke"], "one of the two"),
    "no such file": (["run", "nowhere.toml"], "nowhere.toml"),
    "no such study": (["report", "nowhere"], "nowhere"),
    "report of nothing": (["report"], "one of the two"),
    "a folder and the demo": (["report", "study", "--demo"], "one of the two"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_line_and_nothing_written(
    case: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    arguments, expected = CASES[case]
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    output, errors = capsys.readouterr()
    assert expected in one_line(errors)
    assert errors.startswith("error: ") and len(errors) < 500
    assert output == ""
    assert list(tmp_path.iterdir()) == []


OPTIONS = (
    *("--gamma", "--depth", "--seeds", "--seed-list", "--task", "--shape", "--rule", "--lrs"),
    *("--protocol", "--preset", "--out", "--threads", "--memory-limit", "--on-error"),
)


@pytest.mark.parametrize("word", ["None", "", " "])
@pytest.mark.parametrize("option", OPTIONS)
def test_no_word_stands_for_the_default(option: str, word: str, capsys: pytest.CaptureFixture[str]):
    assert main(["phase", f"{option}={word}"]) == 2
    assert one_line(capsys.readouterr().err).startswith(f"error: {option} is ")


def test_a_folder_of_studies_is_told_with_what_it_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "study.json").write_text("{}")
    assert main(["report", str(tmp_path)]) == 2
    line = one_line(capsys.readouterr().err)
    assert "holds 2 studies and is none itself (one, two)" in line
    assert line.endswith(f"initrate report {tmp_path / 'one'}")


@pytest.mark.parametrize("kind", ["a file", "under a file", "a link to nothing", "a loop of links"])
def test_a_dry_run_refuses_the_place_that_the_run_would_refuse(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    place = tmp_path / "study"
    if kind in ("a file", "under a file"):
        place.write_text("mine")
    else:
        place.symlink_to(place if kind == "a loop of links" else tmp_path / "nowhere")
    asked = place / "inner" if kind == "under a file" else place
    assert main(["phase", "--preset", "smoke", "--dry-run", "--out", str(asked)]) == 2
    errors = capsys.readouterr().err
    assert ("is a file" if kind == "under a file" else kind) in one_line(errors)
    assert "measuring" not in errors


def test_a_dry_run_refuses_a_folder_that_may_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert main(["phase", "--preset", "smoke", "--dry-run", "--out", str(tmp_path / "s")]) == 2
    assert "permission denied" in one_line(capsys.readouterr().err)


def test_a_folder_that_may_not_be_looked_into_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def refuse(path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", refuse)
    assert main(["report", str(tmp_path)]) == 2
    line = one_line(capsys.readouterr().err)
    assert "Permission denied" in line and "leave to read it" in line


def test_a_page_of_someone_else_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "report.html").write_text("my own notes")
    assert main(["report", "--demo", "--out", str(tmp_path)]) == 2
    assert "was not written by initrate report" in one_line(capsys.readouterr().err)
    assert (tmp_path / "report.html").read_text() == "my own notes"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    (tmp_path / "report.html").unlink()
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "map-label.svg").write_text("my own drawing")
    assert main(["report", "--demo", "--out", str(tmp_path)]) == 2
    assert "map-label.svg was not written by" in one_line(capsys.readouterr().err)
    (tmp_path / "figures" / "map-label.svg").rename(tmp_path / "figures" / "mine.svg")
    for _ in range(2):  # Its own page and figures are written anew.
        assert main(["report", "--demo", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    (tmp_path / "report.html").unlink()
    assert main(["report", "--demo", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "figures" / "mine.svg").read_text() == "my own drawing"


STUDIES = {
    "not TOML": ("schema = = 1", "line 1"),
    "no task": ('schema = 1\nname = "x"', "[task]"),
    "another schema": ('schema = 2\n[task]\nvariant = "34-wrong"', "schema"),
    "unknown key": ('schema = 1\n[task]\nvariant = "34-wrong"\n[axis]\nlr = [1]', "'axes'"),
    "held-out pair that is no pair": (
        'schema = 1\n[task]\nvariant = "34-wrong"\nunseen = [[4, 3, 1]]',
        "held-out pair",
    ),
    "held-out pair of no anchors": (
        'schema = 1\n[task]\nvariant = "34-wrong"\nunseen = ["4,9"]',
        "9",
    ),
    "override of a held-out pair": (
        'schema = 1\n[task]\nvariant = "34-wrong"\noverrides = [["4,3", -6]]',
        "4,3",
    ),
    "two overrides of one pair": (
        'schema = 1\n[task]\nvariant = "34-wrong"\noverrides = [["3,4", -6], ["3,4", -5]]',
        "3,4",
    ),
    "a number of 5,000 digits": (
        'schema = 1\n[task]\nvariant = "34-wrong"\n[training]\nsteps = ' + "1" * 5000,
        "a number has too many digits",
    ),
    "binary": ("\x00\x01\x02", "study.toml"),
}


@pytest.mark.parametrize("case", STUDIES)
def test_a_bad_study_file_is_one_line(
    case: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    text, expected = STUDIES[case]
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(text)
    assert main(["run", "study.toml", "--out", "study"]) == 2
    output, errors = capsys.readouterr()
    assert expected in one_line(errors)
    assert output == ""
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]

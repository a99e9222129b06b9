"""Bad input: one clear line, exit code 2, nothing written."""

from __future__ import annotations

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

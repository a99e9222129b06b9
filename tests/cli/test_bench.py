"""`initrate bench`: the table, the JSON, what it says of itself, bad input."""

from __future__ import annotations

import json
import sys

import pytest

from initrate.bench import ENGINES, SIZES
from initrate.cli import main
from tests.bench.small import small
from tests.cli.process import one_line

QUICK = ["bench", "--sizes", "small", "--engines", "initrate,eager", "--seconds", "0"]


@pytest.fixture(autouse=True)
def one_small_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SIZES, "small", small("laptop", steps=2))


def test_the_table_and_progress(capsys: pytest.CaptureFixture[str]):
    assert main([*QUICK, "--rounds", "1", "--threads", "1"]) == 0
    output, errors = capsys.readouterr()
    for word in ("utilisation", "ceiling", "initrate", "eager", "GEMM peak", "best peer"):
        assert word in output
    assert "small: eager is warm" in errors and "small, round 1: initrate" in errors


def test_json_alone_goes_to_standard_output(capsys: pytest.CaptureFixture[str]):
    assert main([*QUICK, "--rounds", "2", "--threads", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == 1
    assert [row["engine"] for row in found["rows"]] == ["initrate", "eager"]
    assert all(row["rounds"] >= 2 and row["size"] == "small" for row in found["rows"])
    assert found["left_out"] == [] and found["environment"]["threads"] == 1


def test_a_peer_that_is_not_installed_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    absent = {"jax": "jax is not installed: pip install jax"}
    monkeypatch.setattr("initrate.bench._measure.lacking", absent.get)
    arguments = ["bench", "--sizes", "small", "--engines", "jax", "--rounds", "1"]
    assert main([*arguments, "--json"]) == 0
    output, errors = capsys.readouterr()
    found = json.loads(output)
    assert found["rows"] == []
    assert found["left_out"] == [{"engine": "jax", "reason": absent["jax"]}]
    assert "jax is left out: jax is not installed" in errors
    assert main(arguments) == 0
    assert "left out: jax (jax is not installed: pip install jax)" in capsys.readouterr().out


def test_without_torch_the_extra_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delitem(sys.modules, "initrate.bench._gemm", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["bench"]) == 2
    assert "needs torch, which is not installed" in one_line(capsys.readouterr().err)


def test_help_names_all_sizes_and_engines(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    words = capsys.readouterr().out.replace(",", " ").replace(".", " ").split()
    assert set(words) >= {name for name in SIZES if name != "small"} | set(ENGINES)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sizes", "labtop"], "unknown size 'labtop': did you mean 'laptop'?"),
        (["--sizes", "laptop,d129"], "unknown size 'd129': did you mean 'd128'?"),
        (["--engines", "jaxx"], "unknown engine 'jaxx': did you mean 'jax'?"),
        (["--sizes", "laptop,laptop"], "sizes name one twice"),
        (["--sizes", ""], "--sizes is empty"),
        (["--seconds", "-1"], "seconds is -1"),
        (["--seconds", "soon"], "found 'soon', expected a number"),
        (["--rounds", "0"], "rounds is 0"),
        (["--threads", "0"], "threads is 0"),
        (["--theads", "1"], "did you mean '--threads'"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["bench", *arguments]) == 2
    output, errors = capsys.readouterr()
    assert words in one_line(errors)
    assert output == ""

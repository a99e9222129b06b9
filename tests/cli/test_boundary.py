"""`initrate boundary`: its table, its JSON, its dry run, going on, and what it refuses."""

from __future__ import annotations

import itertools
import json
import signal
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from initrate.boundary import plan_search
from initrate.cli import main
from tests.cli.process import SMALL, one_line, start

# Models so small and trained so little that none composes: a search that soon has its answer.
SEARCH = ["boundary", *SMALL, "--gamma", "0.4:0.8:0.1", "--resolution", "0.1", "--seeds", "3"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "search"
    assert main([*SEARCH, "--out", str(folder)]) == 0
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "running" not in path.parts
    }


def test_json_has_exactly_the_keys_that_are_promised(
    trained: Path, capsys: pytest.CaptureFixture[str]
):
    assert main([*SEARCH, "--out", str(trained), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == [
        *("schema", "folder", "axis", "by", "label", "resolution", "confidence", "boundaries"),
        *("cells", "full_grid_cells", "operations", "full_grid_operations"),
    ]
    assert (found["schema"], found["folder"]) == (1, str(trained))
    assert (found["axis"], found["by"], found["label"]) == ("gamma", "depth", "composed")
    assert found["full_grid_cells"] == 15
    assert 0 < found["cells"] <= 15
    assert found["operations"] / found["full_grid_operations"] == pytest.approx(found["cells"] / 15)
    assert [row["depth"] for row in found["boundaries"]] == [1]
    assert found["boundaries"][0]["crossings"] == []


def test_the_end_shows_boundaries_cost_and_picture(
    trained: Path, capsys: pytest.CaptureFixture[str]
):
    assert main([*SEARCH, "--out", str(trained)]) == 0
    output, errors = capsys.readouterr()
    lines = output.splitlines()
    assert "gamma of the boundary" in output and "90% interval" in output
    assert "none" in output and "nowhere" in output
    assert "in place of the 15 of the full grid" in lines[-2]
    assert lines[-1] == f"picture: {trained / 'boundary.svg'}"
    assert "depth 1: no boundary of composed" in errors


def test_any_label_of_several_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["--label", "not_trained", "--label", "composed"]
    assert main([*SEARCH, *words, "--out", str(tmp_path / "s"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["label"] == ["not_trained", "composed"]
    assert main([*SEARCH, *words, "--out", str(tmp_path / "s")]) == 0
    assert "everywhere" in capsys.readouterr().out


def test_another_axis_and_another_second_axis(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    changes = ["--axis", "weight_decay", "--by", "gamma", "--gamma", "0.5,0.8", "--seeds", "1"]
    changes += ["--set", "weight_decay=0:0.4:0.2", "--resolution", "0.2"]
    assert main(["boundary", *SMALL, *changes, "--out", str(tmp_path / "s"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["axis"], found["by"], found["full_grid_cells"]) == ("weight_decay", "gamma", 6)
    assert [row["gamma"] for row in found["boundaries"]] == [0.5, 0.8]


def test_a_dry_run_writes_nothing_and_tells_the_full_grid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert main([*SEARCH, "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["full_grid_cells"] == 15
    assert found["full_grid_operations"] > 0 and found["full_grid_seconds"] > 0
    assert found["first_round"]["depth"] == 1
    assert set(found["first_round"]["gamma"]) <= {0.4, 0.5, 0.6, 0.7, 0.8}
    assert found["folder"].startswith("studies/smoke-") and "-boundary-" in found["folder"]
    assert main([*SEARCH, "--dry-run"]) == 0
    output = capsys.readouterr().out
    assert "15 runs" in output and "first round: depth 1, gamma" in output
    assert list(tmp_path.iterdir()) == []


def test_interrupted_it_keeps_all_and_the_same_command_goes_on(tmp_path: Path):
    long = [*SEARCH, "--set", "steps=100000", "--set", "log_every=50", "--out", "s"]
    with start(*long, cwd=tmp_path) as child:
        assert child.stderr is not None
        assert "done already" in child.stderr.readline()
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        output, errors = child.communicate(timeout=400)
    assert (child.returncode, output) == (130, ""), errors
    assert errors.splitlines()[-1] == "interrupted; the same command goes on from here (s)"
    assert (tmp_path / "s" / "boundary.toml").exists()
    assert len(list((tmp_path / "s").rglob("*.checkpoint"))) == 1


def test_stopped_and_gone_on_with_it_is_the_same_search(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    @contextmanager
    def stop_at_the_tenth_asking():
        askings = itertools.count(1)
        yield lambda: next(askings) >= 10

    pieces = [*SEARCH, "--out", str(tmp_path / "pieces")]
    with monkeypatch.context() as patch:
        patch.setattr("initrate.cli._interrupt.stop_on_signal", stop_at_the_tenth_asking)
        assert main(pieces) == 130
    assert main(pieces) == 0
    parts = [
        {name: data for name, data in content(folder).items() if "/parts/" in name}
        for folder in (trained, tmp_path / "pieces")
    ]
    assert parts[0] == parts[1]


CASES = {
    "unknown axis": (["--axis", "gama"], "did you mean 'gamma'"),
    "axis that is no number": (["--axis", "activation"], "no number"),
    "axis of one value": (["--axis", "weight_decay"], "--set weight_decay=A:B:STEP"),
    "second axis that is the first": (["--by", "gamma"], "axis and by are both gamma"),
    "too few values": (["--resolution", "0.4"], "has 2 values"),
    "resolution of zero": (["--resolution", "0"], "above zero"),
    "resolution that is a word": (["--resolution", "fine"], "a number"),
    "confidence of a half": (["--confidence", "0.5"], "between 0.5 and 1"),
    "confidence of one": (["--confidence", "1"], "between 0.5 and 1"),
    "unknown label": (["--label", "compsed"], "did you mean 'composed'"),
    "unknown option": (["--resolutoin", "0.1"], "did you mean '--resolution'"),
    "a third axis": (["--set", "lr=1e-3,2e-3"], "2 values of lr beside"),
    "zero seeds": (["--seeds", "0"], "seeds"),
    "the field of an option": (["--set", "gamma=0.5"], "--gamma and --set gamma"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_line(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    changes, expected = CASES[case]
    monkeypatch.chdir(tmp_path)
    names = [word for word in changes if word.startswith("--") and word != "--set"]
    kept = [
        word
        for k, word in enumerate(SEARCH)
        if word not in names and (k == 0 or SEARCH[k - 1] not in names)
    ]
    assert main([*kept, *changes, "--out", "s"]) == 2
    output, errors = capsys.readouterr()
    assert expected in one_line(errors)
    assert output == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_a_folder_of_another_search_is_left_alone(
    dry: list[str], trained: Path, capsys: pytest.CaptureFixture[str]
):
    before = content(trained)
    assert main([*SEARCH, "--label", "mirrored", *dry, "--out", str(trained)]) == 2
    assert "holds another search" in one_line(capsys.readouterr().err)
    assert content(trained) == before


def test_the_study_of_the_command_has_five_seeds():
    from initrate.cli import parsed
    from initrate.cli._boundary import Boundary

    command = parsed(["boundary"])
    assert isinstance(command, Boundary)
    search = command.search()
    assert (search.axis, search.by, search.labels) == ("gamma", "depth", ("composed",))
    assert len(search.study.seeds) == 5
    assert (search.resolution, search.rows) == (0.05, (1, 2, 3))
    assert search == plan_search(command.config())

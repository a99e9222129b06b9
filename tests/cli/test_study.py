"""Studies from the command line: results, JSON, going on, stopping, what cannot be written."""

from __future__ import annotations

import itertools
import json
import os
import pty
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from initrate.cli import main
from initrate.cli._results import CELL_KEYS
from initrate.errors import StoreError
from tests.cli.process import ENVIRONMENT, SMALL, one_line, run, start, without_rights

LONG = ["--set", "steps=100000", "--set", "log_every=50"]
"""A study that does not end by itself within a test."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished smoke study; tests copy what they change."""
    folder = tmp_path_factory.mktemp("trained") / "study"
    code, _, errors = run("phase", *SMALL, "--out", str(folder), cwd=folder.parent)
    assert code == 0, errors
    return folder


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a study but the report, which is derived, and the lock."""
    derived = ("report.html", "figures", "running")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[0] not in derived
    }


def parts(folder: Path) -> dict[str, bytes]:
    return {name: data for name, data in content(folder).items() if name.startswith("parts/")}


def test_json_has_exactly_the_keys_that_are_promised(
    trained: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["phase", *SMALL, "--out", str(trained), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["schema", "study", "cells", "summary"]
    assert (found["schema"], found["study"]) == (1, str(trained))
    assert len(found["cells"]) == 2
    assert [list(cell) for cell in found["cells"]] == [list(CELL_KEYS)] * 2
    assert [cell["gamma"] for cell in found["cells"]] == [0.5, 0.8]
    assert all(cell["symmetric_accuracy"] is None for cell in found["cells"])
    assert all(cell["depth"] == 1 and cell["diverged"] is False for cell in found["cells"])
    row = found["summary"][0]
    assert {"gamma", "n_seeds", "labels", "median", "low", "high"} <= set(row)
    assert sum(row["labels"].values()) == row["n_seeds"] == 1


def test_other_axes_stand_in_the_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    changes = ["--set", "batch=16,32", "--set", "gamma_qk=0.4", "--set", "steps=2"]
    assert main(["phase", *SMALL, *changes, "--out", str(tmp_path / "s"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sorted(cell["batch"] for cell in found["cells"]) == [16, 16, 32, 32]
    assert all(cell["gamma"] is None for cell in found["cells"])
    assert all(cell["gamma_by_role"]["qk"] == 0.4 for cell in found["cells"])


def test_the_end_shows_diagram_summary_and_report(
    trained: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["phase", *SMALL, "--out", str(trained)]) == 0
    output, errors = capsys.readouterr()
    assert "gamma" in output and "0.5" in output and "not trained (2)" in output
    assert output.splitlines()[-2] == f"report: {trained / 'report.html'}"
    assert output.splitlines()[-1].startswith("next: 2 of 2 runs are not trained")
    assert (trained / "report.html").stat().st_size > 1000
    assert "2 done already" in errors


def test_json_comes_only_when_the_report_is_written(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def refuse(*of: object) -> None:
        raise StoreError("no report: disk full")

    monkeypatch.setattr("initrate.report.build_report", refuse)
    assert main(["phase", *SMALL, "--out", str(trained), "--json"]) == 2
    output, errors = capsys.readouterr()
    assert output == ""
    assert "disk full" in one_line(errors)


@pytest.mark.parametrize(("full", "code"), [(True, 2), (False, 0)])
def test_an_output_that_nobody_takes_loses_no_report(
    full: bool, code: int, trained: Path, tmp_path: Path
):
    folder = tmp_path / "study"
    shutil.copytree(trained, folder)
    (folder / "report.html").unlink()
    reader, writer = os.pipe()
    os.close(reader)
    with Path("/dev/full").open("w") as device:
        child = subprocess.run(
            [sys.executable, "-m", "initrate", "phase", *SMALL, "--out", str(folder), "--json"],
            env=ENVIRONMENT,
            stdout=device if full else writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    os.close(writer)
    assert child.returncode == code, child.stderr
    assert "Traceback" not in child.stderr and "Exception ignored" not in child.stderr
    assert (folder / "report.html").exists()


def test_failed_runs_give_their_exit_code_also_when_nobody_reads(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def to_nobody(*words: str, file: TextIO | None = None, **options: object) -> None:
        if file is None:
            raise BrokenPipeError
        print(*words, file=file)

    monkeypatch.setattr("initrate.study.Store.progress", lambda store: (1, 2))
    monkeypatch.setattr("initrate.cli._output._silence", lambda stream: None)
    monkeypatch.setattr("initrate.cli._output.print", to_nobody, raising=False)
    assert main(["phase", *SMALL, "--out", str(trained), "--json"]) == 1
    assert "1 of 2 runs failed" in capsys.readouterr().err


def test_a_dry_run_writes_nothing_and_tells_the_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert main(["phase", *SMALL, "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n_cells"], found["n_buckets"], found["study"]) == (2, 1, "studies/smoke")
    assert found["seconds"] > 0 and found["memory"] > 0 and found["operations"] > 0
    assert found["sizes"][0]["parameters"] == 6176
    assert main(["phase", *SMALL, "--dry-run"]) == 0
    assert "6,176" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_a_folder_of_another_study_is_left_alone(
    dry: list[str], trained: Path, capsys: pytest.CaptureFixture[str]
):
    before = content(trained)
    assert main(["phase", *SMALL, "--gamma", "0.6", *dry, "--out", str(trained)]) == 2
    errors = capsys.readouterr().err
    assert "another study" in one_line(errors) and "measuring" not in errors
    assert content(trained) == before


def test_a_dry_run_tells_what_is_done_and_the_time_for_the_rest(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    arguments = ["phase", *SMALL, "--dry-run", "--out", str(trained)]
    assert main(arguments) == 0
    assert "2 runs done already, and nothing left" in capsys.readouterr().out
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n_cells"], found["n_done"], found["seconds"], found["sizes"]) == (2, 2, 0, [])
    folder = tmp_path / "study"
    shutil.copytree(trained, folder)
    for part in (folder / "parts").iterdir():
        shutil.rmtree(part)
    before = content(folder)
    assert main([*arguments[:-1], str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n_cells"], found["n_done"], found["sizes"][0]["n_cells"]) == (2, 0, 2)
    assert content(folder) == before


def test_a_page_of_the_user_in_a_studys_folder_is_left_alone(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "study"
    shutil.copytree(trained, folder)
    (folder / "report.html").write_text("mine")
    for arguments in (["report", str(folder)], ["phase", *SMALL, "--out", str(folder)]):
        assert main(arguments) == 2
        assert "was not written by initrate report" in one_line(capsys.readouterr().err)
    assert (folder / "report.html").read_text() == "mine"


def test_a_folder_of_other_files_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["phase", *SMALL, "--out", str(tmp_path)]) == 2
    assert "holds no study" in one_line(capsys.readouterr().err)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_in_place_of_the_folder_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "study"
    file.write_text("mine")
    assert main(["phase", *SMALL, "--out", str(file)]) == 2
    assert "is a file" in one_line(capsys.readouterr().err)
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    "name",
    ["study.json", "study.toml", "execution.json", "manifest.json", "cells.parquet"],
)
@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
@pytest.mark.parametrize("command", ["phase", "report"])
def test_a_tampered_study_is_named_in_one_line(
    name: str, damage: str, command: str, trained: Path, tmp_path: Path, capsys
):
    folder = tmp_path / "study"
    shutil.copytree(trained, folder)
    (folder / "cells.parquet").unlink()  # Derived; the one in the part is meant below.
    (victim,) = folder.rglob(name)
    data = victim.read_bytes()
    if damage == "gone":
        victim.unlink()
    elif damage == "cut":
        victim.write_bytes(data[: len(data) // 2])
    else:
        # In a manifest, the end is the checksum of a file that neither command reads.
        at = len(data) - 20 if name != "manifest.json" else data.index(b"cells.parquet") + 30
        victim.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    before = content(folder)
    arguments = ["phase", *SMALL, "--out", str(folder)] if command == "phase" else [command]
    arguments += [str(folder)] if command == "report" else []
    assert main(arguments) == 2
    assert str(folder) in one_line(capsys.readouterr().err)
    after = {key: data for key, data in content(folder).items() if key != "environment.json"}
    before.pop("environment.json")
    assert after == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_keeps_all_and_the_same_command_goes_on(number: int, tmp_path: Path):
    for _ in range(2):
        with start("phase", *SMALL, *LONG, "--out", "study", cwd=tmp_path) as child:
            wait_for_start(child)
            time.sleep(1)
            child.send_signal(number)
            output, errors = child.communicate(timeout=400)
        assert (child.returncode, output) == (130, ""), errors
        assert "Traceback" not in errors
        last = errors.splitlines()[-1]
        assert last.startswith("interrupted: 0 of 2 runs are done; the same command goes on")
        assert len(list((tmp_path / "study" / "running").glob("*.checkpoint"))) == 1


def test_stopped_and_gone_on_with_it_is_the_same_study_to_the_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    @contextmanager
    def stop_at_the_tenth_asking():
        askings = itertools.count(1)
        yield lambda: next(askings) >= 10

    whole, pieces = (["phase", *SMALL, "--out", str(tmp_path / n)] for n in ("whole", "pieces"))
    assert main(whole) == 0
    with monkeypatch.context() as patch:
        patch.setattr("initrate.cli._study.stop_on_signal", stop_at_the_tenth_asking)
        assert main(pieces) == 130
    assert not parts(tmp_path / "pieces")
    capsys.readouterr()
    assert main(pieces) == 0
    assert "1 bucket goes on from its checkpoint" in capsys.readouterr().err.splitlines()[0]
    assert parts(tmp_path / "pieces") == parts(tmp_path / "whole")


def test_a_second_process_is_refused_with_the_number_of_the_first(tmp_path: Path):
    arguments = ["phase", *SMALL, *LONG, "--out", "study"]
    with start(*arguments, cwd=tmp_path) as child:
        wait_for_start(child)
        code, _, errors = run(*arguments, cwd=tmp_path)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=400)
    assert code == 2
    assert str(child.pid) in one_line(errors)


def test_the_report_of_a_running_study_can_be_written(tmp_path: Path):
    with start("phase", *SMALL, *LONG, "--out", "study", cwd=tmp_path) as child:
        wait_for_start(child)
        code, output, errors = run("report", "study", "--out", "page", cwd=tmp_path)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=400)
    assert (code, output) == (0, "report: page/report.html\n"), errors


def test_a_folder_that_may_not_be_written_is_one_line(tmp_path: Path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    code, output, errors = run(
        "phase", *SMALL, "--out", str(closed / "study"), cwd=tmp_path, before=without_rights
    )
    assert (code, output) == (2, "")
    assert "permission denied" in one_line(errors)
    assert list(closed.iterdir()) == []


def test_a_finished_study_that_may_not_be_written_is_one_line(trained: Path, tmp_path: Path):
    folder = tmp_path / "study"
    shutil.copytree(trained, folder)
    before = content(folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    code, _, errors = run("report", str(folder), cwd=tmp_path, before=without_rights)
    assert code == 2
    assert "permission denied" in one_line(errors)
    assert content(folder) == before


@pytest.mark.parametrize("limit", [0, 3_000, 20_000])
def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(limit: int, tmp_path: Path):
    """A limit on the size of files stops a write as a full disk does."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    arguments = ["phase", *SMALL, "--out", "study"]
    code, _, errors = run(*arguments, cwd=tmp_path, before=limited)
    assert code == 2
    assert "file-size limit" in one_line(errors)
    assert not list(tmp_path.rglob("*.partial"))
    assert not list(tmp_path.glob("study/parts/*")) or limit > 10_000
    # With room again, the same command does the whole of it.
    code, _, errors = run(*arguments, cwd=tmp_path)
    assert code == 0, errors


def test_in_a_terminal_the_diagram_is_live(tmp_path: Path):
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "initrate", "phase", *SMALL, "--set", "steps=500"]
    with subprocess.Popen(
        [*command, "--out", "study"],
        cwd=tmp_path,
        env={**ENVIRONMENT, "TERM": "xterm-256color", "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=follower,
        text=True,
    ) as child:
        os.close(follower)
        shown = b""
        while True:
            try:
                block = os.read(leader, 65536)
            except OSError:  # Linux says so when the other end is closed.
                break
            if not block:
                break
            shown += block
        assert child.stdout is not None
        output = child.stdout.read()
    os.close(leader)
    assert child.returncode == 0
    assert "\x1b[" in shown.decode()
    assert "of 2 runs" in shown.decode() and "left" in shown.decode()
    assert "\x1b[" not in output and "report: study/report.html" in output


def wait_for_start(child: subprocess.Popen[str]) -> None:
    """Wait until the child says that its study began: from then on it hears signals."""
    assert child.stderr is not None
    assert "done already" in child.stderr.readline()

"""The entry point: help, names, exit codes, and how fast it is there."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from initrate.cli import main
from initrate.cli._list import roles
from tests.cli.process import ENVIRONMENT, one_line, run

LIBRARIES = ("numpy", "torch", "polars", "tyro", "rich", "matplotlib", "plotly", "jinja2", "scipy")


def best_seconds(*words: str, tries: int = 5) -> float:
    """The machine may be busy: the best of some tries says what the program itself takes."""
    found = []
    for _ in range(tries):
        began = time.perf_counter()
        subprocess.run([sys.executable, *words], env=ENVIRONMENT, check=True, capture_output=True)
        found.append(time.perf_counter() - began)
    return min(found)


def loaded_by(code: str) -> set[str]:
    program = f"{code}\nimport sys\nprint(*sys.modules)"
    child = subprocess.run(
        [sys.executable, "-c", program], env=ENVIRONMENT, check=True, capture_output=True, text=True
    )
    return set(child.stdout.splitlines()[-1].split())


def test_import_loads_no_library():
    assert loaded_by("import initrate").isdisjoint(LIBRARIES)


def test_help_loads_no_library():
    assert loaded_by("from initrate.cli import main; main(['--help'])").isdisjoint(LIBRARIES)


def test_import_takes_less_than_100_ms():
    assert best_seconds("-c", "import initrate") - best_seconds("-c", "pass") < 0.1


def test_help_takes_less_than_400_ms():
    assert best_seconds("-m", "initrate", "--help") < 0.4


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]):
    assert main(["--help"]) == 0
    output = capsys.readouterr().out
    assert all(
        f"\n  {name} " in output
        for name in ("phase", "run", "boundary", "report", "plan", "audit", "diff", "bench", "list")
    )


def test_no_command_is_bad_input(capsys: pytest.CaptureFixture[str]):
    assert main([]) == 2
    assert "usage: initrate COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", ["phase", "run", "boundary", "report", "plan", "audit", "diff", "bench", "list"]
)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    output = capsys.readouterr().out
    assert output.startswith(f"usage: initrate {command}")
    assert "--json" in output


@pytest.mark.parametrize("names", ["rules", "roles", "presets", "shapes", "tasks", "fields"])
def test_list_shows_names_and_lines(names: str, capsys: pytest.CaptureFixture[str]):
    assert main(["list", names]) == 0
    table = capsys.readouterr().out
    assert main(["list", names, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == 1
    assert len(found[names]) >= 4
    assert all(row["name"] in table and row["description"] for row in found[names])


def test_list_knows_every_role_and_its_group():
    from initrate.rule import KEPT_ROLES, ROLE_GROUPS, ROLES

    rows = {row["name"]: row for row in roles()}
    assert list(rows) == list(ROLES)
    for group, members in ROLE_GROUPS.items():
        assert [name for name, row in rows.items() if row["group"] == group] == list(members)
    kept = {name for name, row in rows.items() if "always kept" in str(row["description"])}
    assert kept == set(KEPT_ROLES)


def test_a_missing_library_is_named_with_what_to_install(tmp_path: Path):
    """An empty file in the way of polars stands for an environment without the extra `lab`."""
    (tmp_path / "polars.py").write_text("raise ModuleNotFoundError('no polars', name='polars')")
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{tmp_path}:{ENVIRONMENT['PYTHONPATH']}"}
    child = subprocess.run(
        [sys.executable, "-m", "initrate", "phase", "--preset", "smoke", "--out", "x"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 2
    assert "Traceback" not in child.stderr
    assert "pip install 'initrate[lab]'" in child.stderr.splitlines()[-1]


def test_a_reader_that_leaves_is_no_error():
    code, _, errors = in_shell("list tasks --json | head -n 1")
    assert (code, errors) == (0, "")


@pytest.mark.parametrize("words", ["list rules", "list rules --json", "phase --help", "--help"])
def test_a_full_standard_output_is_one_line(words: str):
    code, _, errors = in_shell(f"{words} >/dev/full")
    assert code == 2
    assert "standard output cannot be written: No space left" in one_line(errors)


@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full"])
def test_without_standard_error_the_exit_code_stays_and_results_are_clean(closed: str):
    assert in_shell(f"list rulez {closed}") == (2, "", "")
    assert in_shell(f"list rules {closed}")[0] == 0


def in_shell(words: str) -> tuple[int, str, str]:
    """Return exit code (of a pipe: any not 0), output and error of `initrate` in a shell."""
    child = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} -m initrate {words}"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    return child.returncode, child.stdout, child.stderr


def test_the_process_ends_with_the_exit_code(tmp_path: Path):
    code, output, errors = run("lisst", "rules", cwd=tmp_path)
    assert (code, output) == (2, "")
    assert errors == (
        "error: unknown command 'lisst': did you mean 'list'? known: phase, run, boundary, report, "
        "plan, audit, diff, bench, list\n"
    )

"""A folder that may not be written to, and a limit on the size of files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from initrate.study import Store, StudyConfig, run
from tests.study import standin
from tests.study.test_runner import contents


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder that everyone may enter: those of pytest are its user's own."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
        _let_write(Path(name), True)


def _let_write(folder: Path, allowed: bool) -> None:
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755 if allowed else 0o555)


def _refused(folder: Path, how: str) -> str:
    command = [sys.executable, "-m", "tests.study.refused_writes", str(folder), how]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])}
    found = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert found.returncode == 2, found.stderr
    assert found.stderr == "" and found.stdout.count("\n") == 1
    return found.stdout


def test_a_limit_on_the_size_of_files(
    config: StudyConfig, trained_once: Path, tmp_path: Path
) -> None:
    """The weights of the first part do not fit: the study stays as it was, and goes on later."""
    folder = tmp_path / "s"
    assert "file-size limit" in _refused(folder, "20000")
    store = Store.open(folder)
    assert store.progress() == (0, 16)
    assert [f.name for f in (folder / "parts").iterdir()] == []
    run(config, folder, train=standin.train)
    assert contents(folder) == contents(trained_once)


def test_a_limit_that_not_even_the_beginning_fits(tmp_path: Path) -> None:
    assert "file-size limit" in _refused(tmp_path / "s", "100")
    assert list(tmp_path.iterdir()) == []


def test_a_new_study_where_nothing_may_be_written(open_folder: Path) -> None:
    _let_write(open_folder, False)
    assert "permission denied" in _refused(open_folder / "s", "nobody")
    assert list(open_folder.iterdir()) == []


def test_a_begun_study_that_may_only_be_read(open_folder: Path, trained_once: Path) -> None:
    folder = Path(shutil.copytree(trained_once, open_folder / "s"))
    shutil.rmtree(sorted((folder / "parts").iterdir())[0])
    before = contents(folder)
    _let_write(folder, False)
    assert "permission denied" in _refused(folder, "nobody")
    assert contents(folder) == before

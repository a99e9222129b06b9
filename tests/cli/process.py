"""The command line in a process of its own."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
SMALL = ["--preset", "smoke", "--threads", "1"]


def start(*arguments: str, cwd: Path, before: Callable[[], None] | None = None, **options):
    """Start `initrate` with these arguments; `before` runs in the child, before the program."""
    return subprocess.Popen(
        [sys.executable, "-m", "initrate", *arguments],
        cwd=cwd,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=before,
        **options,
    )


def run(*arguments: str, cwd: Path, before: Callable[[], None] | None = None):
    """Return exit code, standard output and standard error of `initrate` with these arguments."""
    with start(*arguments, cwd=cwd, before=before) as child:
        output, errors = child.communicate(timeout=400)
    return child.returncode, output, errors


def without_rights() -> None:
    """Give up all capabilities at the next exec, so that permissions bind root as well."""
    library = ctypes.CDLL(None)
    for capability in range(64):
        library.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def one_line(errors: str) -> str:
    """Return the error of a run, which must be one line and no traceback."""
    lines = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert "Traceback" not in errors, errors
    assert len(lines) == 1, errors
    assert errors.rstrip().endswith(lines[0]), errors
    return lines[0]

"""Full disks and folders one may not write to, in child processes without root's rights."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# The child imports first: without rights it may no longer be able to read its own library.
CHILD = """
import os, resource, sys
from pathlib import Path
from initrate.errors import StoreError
from initrate.files import make_folder, write_new_folder, write_whole

def as_nobody():
    if os.geteuid() == 0:
        import pwd
        nobody = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)
        assert os.geteuid() != 0

def limit_files(n_bytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))

def write_folder():
    with write_new_folder(Path("part")) as folder:
        (folder / "small").write_bytes(b"1")
        (folder / "large").write_bytes(b"x" * 100_000)

try:
    exec(sys.argv[1])
except StoreError as error:
    print(error)
    sys.exit(2)
"""


def run_child(folder: Path, code: str) -> tuple[int, str]:
    """The exit code and the one line of a child process that runs `code` in `folder`."""
    child = subprocess.run(
        [sys.executable, "-c", CHILD, code],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        timeout=60,
        check=False,
    )
    assert child.stderr == ""
    return child.returncode, child.stdout.rstrip("\n")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("write", ["write_whole(Path('kept'), b'x' * 100_000)", "write_folder()"])
def test_the_file_size_limit(tmp_path: Path, write: str) -> None:
    (tmp_path / "kept").write_bytes(b"old")
    name = "part" if "folder" in write else "kept"
    assert run_child(tmp_path, f"limit_files(50_000); {write}") == (
        2,
        f"cannot write {name}: the file-size limit of this process is reached; "
        "raise it (ulimit -f)",
    )
    assert contents(tmp_path) == {"kept": b"old"}


def test_a_file_below_the_limit_is_written(tmp_path: Path) -> None:
    code = "limit_files(50_000); write_whole(Path('kept'), b'x' * 50_000)"
    assert run_child(tmp_path, code) == (0, "")
    assert contents(tmp_path) == {"kept": b"x" * 50_000}


@pytest.mark.parametrize(
    ("write", "name"),
    [
        ("write_whole(Path('kept'), b'new')", "kept"),
        ("write_whole(Path('new'), b'new')", "new"),
        ("write_folder()", "part"),
        ("make_folder(Path('new/inner'))", "new/inner"),
    ],
)
def test_a_folder_one_may_not_write_to(tmp_path: Path, write: str, name: str) -> None:
    (tmp_path / "kept").write_bytes(b"old")
    tmp_path.chmod(0o555)
    try:
        assert run_child(tmp_path, f"as_nobody(); {write}") == (
            2,
            f"cannot write {name}: permission denied; choose a folder you may write to",
        )
    finally:
        tmp_path.chmod(0o755)
    assert contents(tmp_path) == {"kept": b"old"}

"""Whole writes: whatever fails, and whenever, a reader sees the old content or the new."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from initrate.errors import StoreError
from initrate.files import (
    leftovers,
    load_toml,
    make_folder,
    refused,
    write_new_folder,
    write_whole,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    for data in (b"first", b"", b"second" * 100_000):
        write_whole(path, data)
        assert path.read_bytes() == data
    assert names(tmp_path) == ["study.toml"]


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").write_bytes(b"")
    write_whole(tmp_path / "whole", b"")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_long_name_can_be_written(tmp_path: Path) -> None:
    for name in ("x" * 255, "γ" * 127):
        write_whole(tmp_path / name, b"1")
        assert (tmp_path / name).read_bytes() == b"1"


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, failure: BaseException
) -> None:
    path = tmp_path / "cells.parquet"
    write_whole(path, b"old")

    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(step, fail)
    with pytest.raises((StoreError, KeyboardInterrupt)) as caught:
        write_whole(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["cells.parquet"]
    if isinstance(failure, OSError):
        assert str(caught.value) == (
            f"cannot write {path}: the disk is full; free some space and run the same command again"
        )


def test_refusals_name_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for path, message in [
        (tmp_path / "missing" / "x", "the folder does not exist; make it first"),
        (tmp_path / "file" / "x", "a part of the path is a file; choose another folder"),
        (tmp_path / "folder", "it is a folder; choose another name"),
        (tmp_path / ("x" * 300), "the name is too long; choose a shorter one"),
    ]:
        with pytest.raises(StoreError) as caught:
            write_whole(path, b"x")
        assert str(caught.value) == f"cannot write {path}: {message}"
    assert names(tmp_path) == ["file", "folder"]


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the disk quota is used up"),
        (errno.EFBIG, "the file-size limit of this process is reached"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EACCES, "permission denied"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_reasons(number: int, reason: str) -> None:
    message = str(refused(Path("out/x"), OSError(number, os.strerror(number))))
    assert message.startswith(f"cannot write out/x: {reason}") and "\n" not in message


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    with write_new_folder(tmp_path / "part") as folder:
        assert not (tmp_path / "part").exists()
        (folder / "inner").mkdir()
        (folder / "inner" / "cells").write_bytes(b"1")
        (folder / "manifest").write_bytes(b"2")
        assert leftovers(tmp_path) == [folder]
    assert names(tmp_path) == ["part"]
    assert (tmp_path / "part" / "inner" / "cells").read_bytes() == b"1"
    assert (tmp_path / "part" / "manifest").read_bytes() == b"2"


@pytest.mark.parametrize("failure", [ValueError("no"), KeyboardInterrupt(), StoreError("x")])
def test_a_failed_block_leaves_no_folder_and_keeps_its_error(
    tmp_path: Path, failure: BaseException
) -> None:
    with pytest.raises(type(failure)) as caught, write_new_folder(tmp_path / "part") as folder:
        (folder / "cells").write_bytes(b"1")
        raise failure
    assert caught.value is failure
    assert names(tmp_path) == []


def test_errors_of_the_system_inside_the_block(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="part: the disk is full"):
        with write_new_folder(tmp_path / "part"):
            raise OSError(errno.ENOSPC, "full")
    # An error about another file is the block's own: it says nothing about this folder.
    with pytest.raises(FileNotFoundError, match="elsewhere"):
        with write_new_folder(tmp_path / "part"):
            (tmp_path / "elsewhere").read_bytes()
    assert names(tmp_path) == []


def test_a_name_that_is_taken_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("file", "folder", "dangling"):
        with pytest.raises(StoreError, match=f"{name} exists already: expected a new folder"):
            with write_new_folder(tmp_path / name):
                raise AssertionError("the block must not begin")
    assert names(tmp_path) == ["dangling", "file", "folder"]


def test_a_name_taken_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="part: it exists already"):
        with write_new_folder(tmp_path / "part") as folder:
            (folder / "cells").write_bytes(b"mine")
            (tmp_path / "part").mkdir()
            (tmp_path / "part" / "cells").write_bytes(b"theirs")
    assert (tmp_path / "part" / "cells").read_bytes() == b"theirs"
    assert names(tmp_path) == ["part"]


def test_links_do_not_come_into_a_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a link: expected files and folders alone"):
        with write_new_folder(tmp_path / "part") as folder:
            (folder / "link").symlink_to(tmp_path)
    assert names(tmp_path) == []


def test_folders_are_made_with_their_parents(tmp_path: Path) -> None:
    assert make_folder(tmp_path / "a" / "b").is_dir()
    assert make_folder(tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="file is a file: expected a folder"):
        make_folder(tmp_path / "file")
    with pytest.raises(StoreError, match="a part of the path is a file"):
        make_folder(tmp_path / "file" / "x")


WRITER = """
import sys
from pathlib import Path
from initrate.files import write_whole
path = Path(sys.argv[1])
print("begin", flush=True)
number = 0
while True:
    number += 1
    write_whole(path, b"number = %d\\nagain = " % number + b"[" + b"%d," % number * 3_000 + b"]")
"""


def test_a_reader_never_sees_a_half_and_a_kill_leaves_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "state.toml"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        assert writer.stdout is not None and writer.stdout.readline() == b"begin\n"
        seen: set[object] = set()
        while len(seen) < 12:
            if path.exists():
                found = load_toml(path)
                assert found["again"] == [found["number"]] * 3_000
                seen.add(found["number"])
    finally:
        writer.kill()
        writer.communicate()
    found = load_toml(path)
    assert found["again"] == [found["number"]] * 3_000
    # What the killed process may have left is named as unfinished, and nothing else is there.
    assert {path.name for path in leftovers(tmp_path)} == set(names(tmp_path)) - {"state.toml"}

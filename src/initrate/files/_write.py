"""Writing so that a reader sees the whole of a file or folder, or nothing of it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from initrate.errors import StoreError
from initrate.files._messages import place_words, refused, shown

TEMPORARY_SUFFIX = ".partial"
"""How the names of unfinished files and folders end; such a leftover may be deleted."""


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole: it has its old content or the new one, whatever happens.

    The bytes go to a temporary file in the same folder, which takes the name once they are on
    the disk. A refusal of the system (full, read-only, no permission, file-size limit) is a
    `StoreError`, and nothing is left behind.
    """
    path = Path(path)
    temporary = _temporary_name(path)
    try:
        try:
            _write_through(temporary, data)
            # Replacing keeps no half: a reader holds the old file or the new one.
            temporary.replace(path)
            _sync_folder(path.parent)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise refused(path, error) from error


@contextmanager
def write_new_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that takes the name `path` at the end of the block, whole.

    The name must be free. If the block fails, or the system refuses, nothing is left behind.
    """
    path = Path(path)
    temporary = _temporary_name(path)
    try:
        if os.path.lexists(path):
            raise StoreError(f"{shown(path)} exists already: expected a new folder")
        try:
            temporary.mkdir()
            yield temporary
            _sync_tree(temporary)
            temporary.rename(path)
            _sync_folder(path.parent)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    except OSError as error:
        # A full disk names no file; an error about a file elsewhere is the block's own.
        if error.filename is None or Path(os.fsdecode(error.filename)).is_relative_to(temporary):
            raise refused(path, error) from error
        raise


def make_folder(path: Path) -> Path:
    """Return the folder, made with its parents where it was not there."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise StoreError(f"{shown(path)} is {place_words(path)}: expected a folder") from error
    except OSError as error:
        raise refused(path, error) from error
    return path


def leftovers(folder: Path) -> list[Path]:
    """Return the unfinished files and folders that a killed process left in this folder.

    They are known by the whole form of their names: others that end alike are not ours. Only who
    holds the folder alone may delete them: another writer may be at work on one.
    """
    found = Path(folder).glob(f".*{TEMPORARY_SUFFIX}")
    return sorted(p for p in found if _OURS.fullmatch(p.name) and not p.is_symlink())


def leftovers_of(path: Path) -> list[Path]:
    """Return what killed writers of this one file or folder left beside it."""
    path = Path(path)
    own = re.compile(re.escape(_temporary_stem(path)) + _ENDING)
    return [found for found in leftovers(path.parent) if own.fullmatch(found.name)]


_ENDING = rf"\.[0-9a-f]{{16}}{re.escape(TEMPORARY_SUFFIX)}"
_OURS = re.compile(rf"\..+{_ENDING}", re.DOTALL)


def _temporary_name(path: Path) -> Path:
    """Return a name of its own in the same folder, so that taking the final name is one step."""
    return path.with_name(f"{_temporary_stem(path)}.{os.urandom(8).hex()}{TEMPORARY_SUFFIX}")


def _temporary_stem(path: Path) -> str:
    # A long name leaves room for what is added: most file systems take 255 bytes.
    return "." + os.fsencode(path.name)[:200].decode("utf-8", "ignore")


def _write_through(path: Path, data: bytes) -> None:
    """Write a new file and wait until the disk has it."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_tree(folder: Path) -> None:
    """Wait until the disk has every file and folder in here."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            raise StoreError(f"{shown(path)} is a link: expected files and folders alone")
        if path.is_dir():
            _sync_folder(path)
        else:
            _sync(path, os.O_RDONLY)
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    """Wait until the disk has the names in this folder."""
    _sync(folder, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""One process a study: the lock that a running one holds."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from initrate.errors import InputError, StoreError
from initrate.files import check_plain, place_words, refused, shown
from initrate.study._folder import reading


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock file of a study for the length of a block; a second process is refused.

    The system drops the lock of a process that died, so a stale one is taken over by itself.
    """
    with reading(path):
        if path.is_symlink() or (path.exists() and not path.is_file()):
            # Followed, a link would have a file elsewhere emptied.
            kind = "a link" if path.is_symlink() else place_words(path)
            raise StoreError(
                f"{shown(path)} is {kind}: expected the study's lock, a plain file; remove it "
                "and run the study again"
            )
    try:
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise refused(path, error) from error
    with file:
        if not any(_taken_after(seconds, file, path) for seconds in (0.0, 0.05, 0.2)):
            raise StoreError(
                f"{shown(path.parent.parent)} is being run by {_holder(file)}: wait for it"
            )
        file.seek(0)
        file.truncate()
        json.dump({"pid": os.getpid(), "host": socket.gethostname()}, file)
        file.flush()
        try:
            yield
        finally:
            # The file stays: were it deleted, two processes could lock two files of one name.
            with suppress(OSError):
                file.truncate(0)


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock file now."""
    try:
        check_plain(path, links=False)  # A pipe would be waited for.
        with path.open("r", encoding="utf-8") as file:
            return not _taken(file, path)
    except (OSError, InputError):
        return False


def _taken_after(seconds: float, file: IO[str], path: Path) -> bool:
    """Someone who asks whether the lock is held holds it for a moment; that is waited for."""
    time.sleep(seconds)
    return _taken(file, path)


def _taken(file: IO[str], path: Path) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise StoreError(
            f"cannot lock {shown(path)}: {error.strerror}; choose a folder on another file system"
        ) from error
    return True


def _holder(file: IO[str]) -> str:
    file.seek(0)
    with suppress(ValueError, TypeError, KeyError):
        found = json.loads(file.read(1000))
        return f"process {found['pid']} on {found['host']}"
    return "another process"

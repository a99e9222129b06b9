"""One line for what a file system refuses: what could not be done, why, what to do."""

from __future__ import annotations

import errno
import stat
from pathlib import Path

from initrate.errors import StoreError

_REASONS = {
    errno.ENOSPC: "the disk is full; free some space and run the same command again",
    errno.EDQUOT: "the disk quota is used up; free some space and run the same command again",
    errno.EFBIG: "the file-size limit of this process is reached; raise it (ulimit -f)",
    errno.EROFS: "the file system is read-only; choose another folder",
    errno.EACCES: "permission denied; choose a folder you may write to",
    errno.EPERM: "permission denied; choose a folder you may write to",
    errno.ENOENT: "the folder does not exist; make it first",
    errno.ENOTDIR: "a part of the path is a file; choose another folder",
    errno.EISDIR: "it is a folder; choose another name",
    errno.EEXIST: "it exists already; choose another name",
    errno.ENOTEMPTY: "it exists already; choose another name",
    errno.ELOOP: "it is a loop of links; choose another name",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
}


def shown(path: Path | str) -> str:
    """Return a path for a message: as it is, or quoted where it would break the line.

    >>> shown("runs/laptop")
    'runs/laptop'
    """
    text = str(path)
    return text if text.isprintable() and text else ascii(text)


def refused(path: Path, error: OSError) -> StoreError:
    """Return the one-line error for a write that the system refused."""
    reason = _REASONS.get(error.errno or 0) or error.strerror or type(error).__name__
    return StoreError(f"cannot write {shown(path)}: {reason}")


def place_words(path: Path) -> str:
    """Return what is in a place, for a message; OSError where the system does not say.

    >>> place_words(Path("/")), place_words(Path("/dev/null"))
    ('a folder', 'a special file')
    """
    path = Path(path)
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "a loop of links"
        if path.is_symlink() and error.errno == errno.ENOENT:
            return "a link to nothing"
        raise
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a file" if stat.S_ISREG(mode) else "a special file"

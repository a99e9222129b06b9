"""Beginning a study: whole or not at all, by one process, also where two start at once."""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack
from pathlib import Path

from initrate.errors import StoreError
from initrate.files import leftovers_of, make_folder, place_words, shown, write_new_folder
from initrate.study import _folder
from initrate.study._config import StudyConfig
from initrate.study._execution import ExecutionPlan
from initrate.study._label import Thresholds
from initrate.study._lock import held, is_held

_OLD_SECONDS = 60
"""A folder of a killed start that has no lock yet is left alone for as long."""


def is_new(folder: Path) -> bool:
    """Return whether a study may begin here: nothing there, an empty folder, or a start cut off."""
    with _folder.reading(folder):
        if not folder.exists():
            if folder.is_symlink():
                raise StoreError(
                    f"{shown(folder)} is {place_words(folder)}: expected a folder for the study"
                )
            return True
        if not folder.is_dir():
            raise StoreError(
                f"{shown(folder)} is {place_words(folder)}: expected a folder for the study"
            )
        names = {entry.name for entry in folder.iterdir()}
        return not names or _is_cut_off(folder, names)


def begin(folder: Path, config: StudyConfig, plan: ExecutionPlan, thresholds: Thresholds) -> None:
    """Write the folder of a new study, whole; a folder that holds anything is left as it is.

    Where another process was faster, its study stands, and nothing is written.
    """
    lock = folder / _folder.LOCK
    with _folder.reading(folder):
        there = folder.is_dir()
    if there:
        make_folder(lock.parent)
        with held(lock):
            if not (folder / _folder.STUDY_JSON).exists():
                _folder.fill(folder, config, plan, thresholds)
        return
    make_folder(folder.parent)
    try:
        # The lock is held until the folder has its name: who clears leftovers can tell by it.
        with ExitStack() as stack, write_new_folder(folder) as temporary:
            make_folder(temporary / _folder.RUNNING)
            stack.enter_context(held(temporary / _folder.LOCK))
            _folder.fill(temporary, config, plan, thresholds)
    except StoreError:
        with _folder.reading(folder):
            if not (folder / _folder.STUDY_JSON).is_file():
                raise


def clear_cut_off_starts(folder: Path) -> None:
    """Delete what killed starts of this very folder left beside it; a live one is left alone."""
    # What is beside the folder is no part of the study: where it cannot be cleared, it stays.
    try:
        for leftover in leftovers_of(folder):
            if _is_dead(leftover):
                shutil.rmtree(leftover, ignore_errors=True)
    except OSError:
        return


def _is_dead(leftover: Path) -> bool:
    if not leftover.is_dir() or any(p.name not in _folder.NAMES for p in leftover.iterdir()):
        return False
    lock = leftover / _folder.LOCK
    if lock.is_file():
        return not is_held(lock)
    return time.time() - leftover.stat().st_mtime > _OLD_SECONDS


def _is_cut_off(folder: Path, names: set[str]) -> bool:
    """Whether a start was killed here before there was a study: its lock came first of all."""
    running = folder / _folder.RUNNING
    if _folder.RUNNING not in names or not running.is_dir() or running.is_symlink():
        return False
    inside = {entry.name for entry in running.iterdir()}
    if inside != {Path(_folder.LOCK).name}:
        return not inside and names == {_folder.RUNNING}
    kept = [folder / name for name in (_folder.PARTS, _folder.TIMING) if name in names]
    own = names <= {*_folder.NAMES} - {_folder.STUDY_JSON}
    return own and not any(place.is_file() or any(place.iterdir()) for place in kept)

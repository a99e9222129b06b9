"""The folder of a study: what lies where, how it is begun, and how it is told from others."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import cast

from initrate import __version__
from initrate.errors import InputError, StoreError
from initrate.files import (
    dotted,
    load_json,
    make_folder,
    place_words,
    read_bounded,
    shown,
    write_whole,
)
from initrate.study._config import StudyConfig
from initrate.study._environment import environment
from initrate.study._execution import ExecutionPlan
from initrate.study._label import Thresholds
from initrate.study._toml import config_digest, config_to_dict, dump_study, load_study

SCHEMA = 1
STUDY_TOML = "study.toml"
STUDY_JSON = "study.json"
EXECUTION = "execution.json"
ENVIRONMENT = "environment.json"
PARTS = "parts"
TIMING = "timing"
RUNNING = "running"
LOCK = f"{RUNNING}/lock"
_FOLDERS = (PARTS, TIMING, RUNNING)
NAMES = (STUDY_TOML, STUDY_JSON, EXECUTION, ENVIRONMENT, *_FOLDERS)
"""What a study's folder holds from its beginning on."""
_LONGEST_NAME, _LONGEST_PATH = 255, 4000
"""Bytes that file systems take, with room for what a study's folder holds."""
_LIMIT = 50_000_000
"""Bytes of an execution plan that are read: a plan of 100,000 cells has two million."""


def folder_path(given: object) -> Path:
    """Return the path of a folder that is given as a path or as text.

    >>> folder_path("studies/laptop").name
    'laptop'
    """
    if not isinstance(given, Path | str) or not str(given) or "\0" in str(given):
        raise InputError(f"the folder is {given!r}: expected a path, as in 'studies/laptop'")
    path = Path(given)
    try:
        sizes = [len(part.encode()) for part in path.parts]
    except UnicodeEncodeError:
        raise InputError(f"the folder's name {str(given)!a} is not UTF-8: rename it") from None
    if max(sizes, default=0) > _LONGEST_NAME or sum(sizes) + len(sizes) > _LONGEST_PATH:
        raise InputError(
            f"the folder {shown(str(given)[:40])}… has too long a name ({len(str(given)):,} "
            "characters): choose a shorter one"
        )
    return path


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Tell what the system refuses while a study is read: one line that names the place."""
    try:
        yield
    except OSError as error:
        place = folder if error.filename is None else os.fsdecode(error.filename)
        raise StoreError(
            f"cannot read {shown(place)}: {error.strerror or error}; restore it, or give "
            "yourself leave to read it"
        ) from error


def write_study_json(folder: Path, config: StudyConfig, thresholds: Thresholds) -> None:
    """Write what the study is known by: hashes of its configuration and plan, thresholds."""
    study = {
        "schema": SCHEMA,
        "initrate": __version__,
        "config_sha256": config_digest(config),
        "sha256": {name: _sha256(folder / name) for name in (STUDY_TOML, EXECUTION)},
        "thresholds": asdict(thresholds),
    }
    _write_json(folder / STUDY_JSON, study)


def read_study(folder: Path) -> tuple[StudyConfig, ExecutionPlan, Thresholds]:
    """Return what a study folder holds, checked: its configuration, plan and thresholds."""
    with reading(folder):
        _check_whole(folder)
    file = folder / STUDY_JSON
    study = _mapping(file)
    if not is_schema(study.get("schema"), SCHEMA):
        raise StoreError(
            f"{shown(file)} has schema {study.get('schema')!r}: expected {SCHEMA}; "
            "it was written by another version of initrate, or it is not a study"
        )
    for key in ("initrate", "config_sha256"):
        if not isinstance(study.get(key), str):
            raise StoreError(
                f"{shown(file)} has {key} {study.get(key)!r}: expected a text; restore it"
            )
    hashes = study.get("sha256")
    for name in (STUDY_TOML, EXECUTION):
        known = hashes.get(name) if isinstance(hashes, dict) else None
        if known != _sha256(folder / name):
            raise StoreError(
                f"{shown(folder / name)} was changed since the study began: restore it, or "
                "begin the changed study in a new folder"
            )
    try:
        config = load_study(folder / STUDY_TOML)
        plan = ExecutionPlan.from_dict(_mapping(folder / EXECUTION))
    except InputError as error:
        named = str(folder) in str(error) or shown(folder) in str(error)
        place = "" if named else f"{shown(folder / EXECUTION)}: "
        raise StoreError(f"{place}{error}") from error
    # Another version may hash more fields; its own files have their hashes all the same.
    same_version = study["initrate"] == __version__
    if same_version and study["config_sha256"] != config_digest(config):
        raise StoreError(
            f"{shown(file)} has the config_sha256 of another study: restore it, or begin the "
            "study in a new folder"
        )
    return config, plan, _thresholds(file, study.get("thresholds"))


def is_schema(found: object, known: int) -> bool:
    """Return whether a stored schema is the known one, and a whole number as that is.

    >>> is_schema(1, 1), is_schema(True, 1), is_schema(1.0, 1)
    (True, False, False)
    """
    return isinstance(found, int) and not isinstance(found, bool) and found == known


def check_same(folder: Path, stored: StudyConfig, given: StudyConfig) -> None:
    """Check that the folder's study is the given one, and say where they differ if not."""
    if config_digest(stored) == config_digest(given):
        return
    there, here = (dotted(config_to_dict(config)) for config in (stored, given))
    differing = [
        key
        for key in dict.fromkeys([*there, *here])
        if there.get(key) != here.get(key) and key not in ("name", "description")
    ]
    first = differing[0]
    raise StoreError(
        f"{shown(folder)} holds another study: {first} is {there.get(first)!r} there and "
        f"{here.get(first)!r} here; choose another folder"
    )


def begin_session(folder: Path) -> None:
    """Add this session to the environments that the study was run in."""
    sessions = _sessions(folder)
    _write_json(folder / ENVIRONMENT, {"schema": SCHEMA, "sessions": [*sessions, environment()]})


def read_sessions(folder: Path) -> list[dict[str, object]]:
    """Return the environments of all sessions, the first one first."""
    return _sessions(folder)


def fill(folder: Path, config: StudyConfig, plan: ExecutionPlan, thresholds: Thresholds) -> None:
    """Write all that a study has at its beginning into a folder that the caller holds alone."""
    for name in _FOLDERS:
        make_folder(folder / name)
    write_whole(folder / STUDY_TOML, dump_study(config).encode())
    _write_json(folder / EXECUTION, plan.to_dict())
    _write_json(folder / ENVIRONMENT, {"schema": SCHEMA, "sessions": []})
    # The last one: without it the folder is no study.
    write_study_json(folder, config, thresholds)


def _check_whole(folder: Path) -> None:
    if not folder.exists() and not folder.is_symlink():
        raise StoreError(f"{shown(folder)} does not exist: expected the folder of a study")
    if not folder.is_dir():
        raise StoreError(
            f"{shown(folder)} is {place_words(folder)}: expected the folder of a study"
        )
    names = (STUDY_JSON, STUDY_TOML, EXECUTION)
    missing = [name for name in names if not _there(folder / name)]
    if len(missing) == len(names):
        raise StoreError(
            f"{shown(folder)} holds no study but other files: choose a new or empty folder"
        )
    if missing:
        raise StoreError(
            f"{shown(folder)} is a half-written study: {missing[0]} is missing; restore it, or "
            "choose another folder"
        )
    if not _there(folder / PARTS):
        raise StoreError(
            f"{shown(folder)} has lost its folder {PARTS}: restore it, or make an empty one to "
            "train all cells anew"
        )
    for name in _FOLDERS:
        if _there(folder / name) and not (folder / name).is_dir():
            place = place_words(folder / name)
            raise StoreError(f"{shown(folder / name)} is {place}: expected a folder")


def _there(path: Path) -> bool:
    """Whether the name is taken, by a link to nothing too; a refusal of the system is raised."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _thresholds(file: Path, table: object) -> Thresholds:
    """A stored study says every threshold: a default of another version would change labels."""
    if not isinstance(table, dict):
        raise StoreError(f"{shown(file)} has no thresholds: expected a table")
    found = cast("dict[str, object]", table)
    missing = [field.name for field in fields(Thresholds) if field.name not in found]
    if missing:
        raise StoreError(f"{shown(file)} lacks the threshold {missing[0]}: restore it")
    try:
        return Thresholds.from_dict(found)
    except InputError as error:
        raise StoreError(f"{shown(file)}: {error}") from error


def _sessions(folder: Path) -> list[dict[str, object]]:
    table = _mapping(folder / ENVIRONMENT)
    found = table.get("sessions") if is_schema(table.get("schema"), SCHEMA) else None
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise StoreError(f"{shown(folder / ENVIRONMENT)} has no list of sessions: restore it")
    return cast("list[dict[str, object]]", found)


def _mapping(path: Path) -> Mapping[str, object]:
    try:
        found = load_json(path, _LIMIT, links=False)
    except InputError as error:
        raise StoreError(str(error)) from error
    if not isinstance(found, dict):
        raise StoreError(f"{shown(path)} holds no table: expected one")
    return cast("Mapping[str, object]", found)


def _write_json(path: Path, content: Mapping[str, object]) -> None:
    write_whole(path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(read_bounded(path, _LIMIT, links=False)).hexdigest()
    except InputError as error:
        raise StoreError(str(error)) from error

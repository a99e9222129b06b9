"""The folder of a search: `boundary.toml`, and a study a round in `rounds/`.

Nothing else is kept: which round comes next follows from the labels of those that are there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from initrate.boundary._choice import Batch
from initrate.boundary._search import Search
from initrate.errors import InputError, StoreError
from initrate.files import (
    dotted,
    dump_toml,
    leftovers,
    load_toml,
    make_folder,
    place_words,
    shown,
    write_whole,
)
from initrate.study import Store, StudyConfig, default_folder, reading

SEARCH = "boundary.toml"
ROUNDS = "rounds"
_ROUND = re.compile(r"([0-9]{3,6})-.+")


def search_folder(search: Search) -> Path:
    """Return the folder of a search that is given none; another search has another one."""
    digest = hashlib.sha256(_text(search).encode()).hexdigest()[:6]
    folder = default_folder(search.study)
    return folder.with_name(f"{folder.name}-boundary-{digest}")


def check_folder(folder: Path, search: Search) -> bool:
    """Return whether the folder holds this very search; False where one may begin in it.

    A folder that holds another search, or anything else, is a `StoreError`.
    """
    with reading(folder):
        if not folder.exists() and not folder.is_symlink():
            return False
        if not folder.is_dir():
            raise StoreError(
                f"{shown(folder)} is {place_words(folder)}: expected a folder for the search"
            )
        unfinished = leftovers(folder)
        names = {path.name for path in folder.iterdir() if path not in unfinished}
    if not names:
        return False
    if SEARCH not in names:
        raise StoreError(
            f"{shown(folder)} holds no boundary search but other files: choose a new or empty "
            "folder"
        )
    there = dotted(_stored(folder / SEARCH))
    here = dotted(load_toml(_text(search)))
    for key in dict.fromkeys([*there, *here]):
        if there.get(key) != here.get(key) and key not in ("study.name", "study.description"):
            raise StoreError(
                f"{shown(folder)} holds another search: {key} is {there.get(key)!r} there and "
                f"{here.get(key)!r} here; choose another folder"
            )
    return True


def begin_folder(folder: Path, search: Search) -> None:
    """Write the search into its folder, whole, before anything is trained."""
    if not check_folder(folder, search):
        make_folder(folder)
        write_whole(folder / SEARCH, _text(search).encode())


def begun_rounds(folder: Path, search: Search) -> list[tuple[Path, Batch]]:
    """Return the rounds that were begun, in order, each with the cells it asks for."""
    with reading(folder):
        if not (folder / ROUNDS).exists():
            return []
        unfinished = leftovers(folder / ROUNDS)
        paths = [path for path in (folder / ROUNDS).iterdir() if path not in unfinished]
    for path in paths:
        if not _ROUND.fullmatch(path.name):
            raise StoreError(f"{shown(path)} is no round of this search: move it out of the folder")
    return [(path, _batch(path, search)) for path in sorted(paths, key=_number)]


def round_path(folder: Path, search: Search, number: int, batch: Batch) -> Path:
    """Return where a round lies: `rounds/NNN-depth-2`."""
    name = f"{number:03d}-{search.by}-{search.rows[batch.row]}"
    return folder / ROUNDS / "".join(c if c.isalnum() or c in "-_+." else "-" for c in name)


def round_study(search: Search, batch: Batch) -> StudyConfig:
    """Return the study that a round is."""
    values = tuple(search.values[k] for k in batch.values)
    return replace(
        search.study,
        axes={search.axis: values, search.by: (search.rows[batch.row],)},
        seeds=tuple(search.study.seeds[k] for k in batch.seeds),
    )


def _batch(path: Path, search: Search) -> Batch:
    config = Store.open(path).config
    try:
        batch = Batch(
            row=search.rows.index(config.axes[search.by][0]),
            values=tuple(search.values.index(cast("float", v)) for v in config.axes[search.axis]),
            seeds=tuple(search.study.seeds.index(seed) for seed in config.seeds),
        )
    except (KeyError, ValueError):
        raise StoreError(
            f"{shown(path)} asks for cells that this search does not have: move it out of the "
            "folder"
        ) from None
    return batch


def _number(path: Path) -> int:
    found = _ROUND.fullmatch(path.name)
    return int(found[1]) if found else 0


def _text(search: Search) -> str:
    return dump_toml(search.to_dict())


def _stored(path: Path) -> Mapping[str, object]:
    try:
        return load_toml(path)
    except InputError as error:
        raise StoreError(f"{shown(path)} cannot be read: {error}; restore it") from error

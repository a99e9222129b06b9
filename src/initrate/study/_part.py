"""A part: all that came out of one bucket, a folder that is written whole and never edited."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from initrate.errors import InputError, StoreError
from initrate.files import load_json, read_bounded, sha256_file, shown, write_new_folder
from initrate.study._columns import wrong_in
from initrate.study._folder import is_schema
from initrate.study._tables import COLUMNS, parquet, polars

if TYPE_CHECKING:
    from polars import DataFrame

SCHEMA = 1
WEIGHTS = "weights.safetensors"
MANIFEST = "manifest.json"
FILES = (*(f"{name}.parquet" for name in COLUMNS), WEIGHTS)
"""The files of a part beside its manifest."""
_MANIFEST_BYTES = 10_000_000
_TABLE_BYTES = 2**31


@dataclass(frozen=True, slots=True)
class Part:
    """A part as its manifest says it is."""

    folder: Path
    bucket: str
    cells: tuple[str, ...]
    files: Mapping[str, str]
    """Name -> SHA-256 of the file's bytes."""


def write_part(
    folder: Path,
    bucket: str,
    cells: Sequence[str],
    tables: Mapping[str, DataFrame],
    weights: Mapping[str, NDArray[np.float32]],
) -> None:
    """Write a part whole: a temporary folder takes its name once all of it is on the disk."""
    with write_new_folder(folder) as temporary:
        hashes: dict[str, str] = {}
        for name, data in _files(cells, tables, weights):
            (temporary / name).write_bytes(data)
            hashes[name] = hashlib.sha256(data).hexdigest()
        manifest = {"schema": SCHEMA, "bucket": bucket, "cells": list(cells), "sha256": hashes}
        (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def read_part(folder: Path) -> Part:
    """Return a part by its manifest; the files themselves are checked when they are read."""
    if not (folder / MANIFEST).is_file() and not (folder / MANIFEST).is_symlink():
        raise wrong_part(folder, f"it has no {MANIFEST}, so it is half-written or not a part")
    with _reading(folder):
        found = load_json(folder / MANIFEST, _MANIFEST_BYTES, links=False)
    manifest = cast("Mapping[str, Any]", found if isinstance(found, dict) else {})
    if not is_schema(manifest.get("schema"), SCHEMA):
        raise wrong_part(folder, f"its schema is {manifest.get('schema')!r}, expected {SCHEMA}")
    bucket, cells, files = (manifest.get(key) for key in ("bucket", "cells", "sha256"))
    if bucket != folder.name or not isinstance(cells, list) or not isinstance(files, dict):
        raise wrong_part(folder, f"its manifest is of bucket {str(bucket)[:40]!r} or not whole")
    if sorted(files) != sorted(FILES):
        raise wrong_part(folder, f"its manifest names {sorted(files)}, expected {sorted(FILES)}")
    for name in FILES:
        if not (folder / name).is_file() and not (folder / name).is_symlink():
            raise wrong_part(folder, f"{name} is missing")
    return Part(folder, folder.name, tuple(str(cell) for cell in cells), files)


def check_part(part: Part) -> None:
    """Check the bytes of every file of a part against its manifest, also of those not read."""
    for name in FILES:
        _check_bytes(part, name)


def read_table(part: Part, name: str) -> DataFrame:
    """Return one table of a part, its bytes checked against the manifest, its columns by type."""
    pl = polars()
    file = part.folder / f"{name}.parquet"
    with _reading(part.folder):
        data = read_bounded(file, _TABLE_BYTES, links=False)
    if hashlib.sha256(data).hexdigest() != part.files[file.name]:
        raise wrong_part(part.folder, f"{file.name} was changed since it was written")
    try:
        table = pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise wrong_part(part.folder, f"{file.name} is not a Parquet table") from error
    wrong = wrong_in(table, name, part.cells)
    if wrong:
        raise wrong_part(part.folder, f"{file.name} {wrong}")
    return table


def read_weights(part: Part, cell: str) -> dict[str, NDArray[np.float32]]:
    """Return the final weights of one cell of a part, by canonical name."""
    from safetensors import SafetensorError, safe_open

    file = part.folder / WEIGHTS
    _check_bytes(part, WEIGHTS)
    lane = part.cells.index(cell)
    try:
        with safe_open(file, framework="np") as tensors:
            return {name: tensors.get_slice(name)[lane] for name in sorted(tensors.keys())}
    except (SafetensorError, OSError, IndexError) as error:
        raise wrong_part(part.folder, f"{WEIGHTS} holds no weights of cell {cell}") from error


def _check_bytes(part: Part, name: str) -> None:
    with _reading(part.folder):
        found = sha256_file(part.folder / name, links=False)
    if found != part.files[name]:
        raise wrong_part(part.folder, f"{name} was changed since it was written")


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """What the system refuses is no damage: nobody is told to remove a part for it."""
    try:
        yield
    except InputError as error:
        if isinstance(error.__cause__, OSError):
            raise StoreError(f"{error}; restore it, or give yourself leave to read it") from error
        raise wrong_part(folder, str(error)) from error


def _files(
    cells: Sequence[str],
    tables: Mapping[str, DataFrame],
    weights: Mapping[str, NDArray[np.float32]],
) -> Iterator[tuple[str, bytes]]:
    from safetensors.numpy import save

    for name in COLUMNS:
        yield f"{name}.parquet", parquet(tables[name])
    # One key alone: the order of several would not be the same every time.
    stacked = {name: np.ascontiguousarray(tensor) for name, tensor in weights.items()}
    yield WEIGHTS, save(stacked, metadata={"cells": " ".join(cells)})


def wrong_part(folder: Path, what: str) -> StoreError:
    """Return the error for a part that is not what was written."""
    return StoreError(
        f"part {shown(folder)} is not what was written: {what}; restore it, or remove the part's "
        "folder and run the study again"
    )

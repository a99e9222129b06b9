"""The tensors of a checkpoint: one safetensors file, or the shards that an index names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from initrate.errors import InputError
from initrate.files import load_json, shown
from initrate.frameworks._safetensors import HEADER_LIMIT, MOST_TENSORS, StoredTensor, read_header

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
_MOST_FILES = 5_000
_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt", "consolidated.00.pth")


def folder_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Return the tensors of a model folder by their names in its files; empty if it has none."""
    if (folder / INDEX).exists():
        return _of_index(folder / INDEX)
    if (folder / WEIGHTS).exists():
        return read_header(folder / WEIGHTS)
    found = sorted(folder.glob("*.safetensors"))
    if len(found) == 1:
        return read_header(found[0])
    if found:
        raise InputError(
            f"{shown(folder)} has {len(found)} safetensors files, none of them {WEIGHTS}, and no "
            f"{INDEX}: name one of the files"
        )
    for name in _PICKLED:
        if (folder / name).exists():
            raise InputError(
                f"{shown(folder)} has its weights in {name}, a pickle, which is never opened "
                "here: save the model once more, as safetensors"
            )
    return {}


def _of_index(index: Path) -> dict[str, StoredTensor]:
    """Return the tensors of all shards; each must be where the index says, and only there."""
    table = load_json(index, limit=HEADER_LIMIT)
    places = table.get("weight_map") if isinstance(table, dict) else None
    if not isinstance(places, Mapping) or not places:
        raise InputError(f"{shown(index)} has no weight_map: expected names and their files")
    if len(places) > MOST_TENSORS:
        raise InputError(f"{shown(index)} names {len(places):,} tensors: expected fewer")
    for name, file in places.items():
        # A file beside the index, and nothing that leads elsewhere.
        wrong = not isinstance(file, str) or not 0 < len(file) < 256 or not file.isprintable()
        if wrong or Path(file).name != file or "\\" in file:
            raise InputError(f"{shown(index)}: {name!a} is in {file!a}, which is no file beside it")
    files = sorted(set(places.values()))
    if len(files) > _MOST_FILES:
        raise InputError(f"{shown(index)} names {len(files):,} files: expected fewer")
    found: dict[str, StoredTensor] = {}
    for file in files:
        for name, tensor in read_header(index.parent / file).items():
            if places.get(name) != file:
                said = f"in {places[name]}" if name in places else "nowhere"
                raise InputError(f"{shown(index)}: {name!a} is in {file}, and it says {said}")
            found[name] = tensor
    for name, file in places.items():
        if name not in found:
            raise InputError(f"{shown(index)}: {name!a} is said to be in {file}, and is not")
    return found

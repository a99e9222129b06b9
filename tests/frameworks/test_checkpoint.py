"""The tensors of a checkpoint: an index is believed in nothing that its files do not hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from initrate.errors import InputError
from initrate.frameworks import _checkpoint
from initrate.frameworks._target import open_target

INDEXES = {
    "no map": ({"metadata": {}}, "has no weight_map"),
    "an empty map": ({"weight_map": {}}, "has no weight_map"),
    "a list": ([], "has no weight_map"),
    "out of the folder": ({"weight_map": {"w": "../m.safetensors"}}, "which is no file beside it"),
    "an absolute path": ({"weight_map": {"w": "/m.safetensors"}}, "which is no file beside it"),
    "the parent": ({"weight_map": {"w": ".."}}, "not a plain file"),
    "a number": ({"weight_map": {"w": 3}}, "which is no file beside it"),
    "a file that is not there": ({"weight_map": {"w": "x.safetensors"}}, "cannot read"),
    "a tensor that is not there": (
        {"weight_map": {"w": "m.safetensors", "v": "m.safetensors"}},
        "'v' is said to be in m.safetensors, and is not",
    ),
    "a tensor it does not name": (
        {"weight_map": {"v": "m.safetensors"}},
        "'w' is in m.safetensors, and it says nowhere",
    ),
}


@pytest.mark.parametrize("case", INDEXES)
def test_an_index_that_is_not_sound(case: str, tmp_path: Path):
    table, words = INDEXES[case]
    save_file({"w": torch.ones(3)}, tmp_path / "m.safetensors")
    (tmp_path / _checkpoint.INDEX).write_text(json.dumps(table))
    with pytest.raises(InputError) as raised:
        open_target(str(tmp_path))
    assert words in str(raised.value)

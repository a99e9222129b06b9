"""The model of a config, and configs that give none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from initrate.errors import InputError
from initrate.frameworks._target import open_target
from tests.frameworks.checkpoints import RULE, changed_config, make_checkpoints


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoints(tmp_path_factory.mktemp("saved"))


CONFIGS = {
    "code of its own": ({"auto_map": {"AutoModel": "x.Y"}}, "needs code of its own"),
    "no type": ({"model_type": None}, "has no model_type"),
    "a type that is no text": ({"model_type": 3}, "has no model_type"),
    "an unknown type": ({"model_type": "gpt22"}, "did you mean 'gpt2'"),
    "an unknown class": ({"architectures": ["GPT22"]}, "names the architecture 'GPT22'"),
    "a class that is no model": ({"architectures": ["GPT2Config"]}, "names the architecture"),
    "fewer layers than none": ({"n_layer": -1}, "n_layer is -1: expected at least 0"),
    "many layers": ({"n_layer": 10**9}, "n_layer is 1,000,000,000: expected 2,000 at most"),
    "layers deep inside": (
        {"text_config": {"num_hidden_layers": 10**6}},
        "num_hidden_layers is 1,000,000",
    ),
    "many positions": ({"n_positions": 10**9}, "n_positions is 1,000,000,000"),
    "sizes that do not divide": ({"n_head": 7}, "cannot be built"),
    "a size that is text": ({"n_embd": "64"}, "cannot be built"),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_a_config_that_gives_no_model(case: str, saved: Path, tmp_path: Path):
    changes, words = CONFIGS[case]
    shutil.copytree(saved / "full", tmp_path / "full")
    path = changed_config(tmp_path, "changed", **changes)
    with pytest.raises(InputError) as raised:
        open_target(str(path)).plan(RULE)
    assert words in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [("[1]", "is no config"), ("{", "is not JSON"), ("[" * 10**5, "nested"), ("\xff", "UTF-8")],
)
def test_a_config_that_is_none(text: str, words: str, tmp_path: Path):
    (tmp_path / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=words):
        open_target(str(tmp_path / "config.json")).plan(RULE)

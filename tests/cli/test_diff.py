"""`initrate diff`: two models tensor by tensor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from initrate.cli import main
from tests.cli.process import one_line

ONES = torch.ones(4, 8)
RANDOM = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
A = {
    **{f"h.{i}.w": RANDOM + i for i in range(4)},
    "same": RANDOM.clone(),
    "double": RANDOM.clone(),
    "shape": ONES,
    "type": ONES.clone(),
    "a_only": torch.zeros(3),
    "codes": torch.ones(3, dtype=torch.int64),
}
B = {
    **{f"h.{i}.w": 3 * (RANDOM + i) for i in range(4)},
    "same": RANDOM.clone(),
    "double": 2 * RANDOM,
    "shape": torch.ones(8, 4),
    "type": ONES.to(torch.bfloat16),
    "b_only": torch.tensor(1.0),
    "codes": torch.ones(3, dtype=torch.int64),
}
MODELS = """
import torch
from torch import nn

def make(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))

def other():
    return make(1)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    save_file({name: tensor.clone() for name, tensor in A.items()}, tmp_path / "a.safetensors")
    save_file({name: tensor.clone() for name, tensor in B.items()}, tmp_path / "b.safetensors")
    prefixed = {f"model.{name}": tensor.clone() for name, tensor in A.items()}
    save_file(prefixed, tmp_path / "prefixed.safetensors")
    (tmp_path / "diff_models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def output(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int) -> str:
    assert main(["diff", *arguments]) == code
    found, errors = capsys.readouterr()
    assert errors == ""
    return found


def test_every_way_to_differ(capsys: pytest.CaptureFixture[str]):
    found = json.loads(output(["a.safetensors", "b.safetensors", "--json"], capsys, 1))
    assert found["schema"] == 1 and found["equal"] is False
    rows = {row["name"]: row for row in found["rows"]}
    assert {name: row["verdict"] for name, row in rows.items() if not name.startswith("h.")} == {
        "same": "equal",
        "double": "differs",
        "shape": "another shape",
        "type": "another type",
        "a_only": "only in A",
        "b_only": "only in B",
        "codes": "equal",
    }
    assert rows["double"]["ratio"] == pytest.approx(2)
    assert rows["h.1.w"]["ratio"] == pytest.approx(3)
    assert rows["a_only"]["std_b"] is None and rows["a_only"]["ratio"] is None
    assert rows["codes"]["std_a"] is None


def test_the_table_gathers_layers(capsys: pytest.CaptureFixture[str]):
    found = output(["a.safetensors", "b.safetensors"], capsys, 1)
    assert "h.*.w ×4" in found and "4 × 8 and 8 × 4" in found
    assert "2 equal" in found.splitlines()[-1] and "5 differs" in found.splitlines()[-1]
    every = output(["a.safetensors", "b.safetensors", "--all"], capsys, 1)
    assert "h.3.w" in every and "×4" not in every


def test_equal_files(capsys: pytest.CaptureFixture[str]):
    assert "10 equal" in output(["a.safetensors", "a.safetensors"], capsys, 0)


@pytest.mark.parametrize("order", [1, -1])
def test_a_prefix_of_all_names_does_not_matter(order: int, capsys: pytest.CaptureFixture[str]):
    files = ["a.safetensors", "prefixed.safetensors"][::order]
    assert "10 equal" in output(files, capsys, 0)


def test_models_of_functions(capsys: pytest.CaptureFixture[str]):
    output(["diff_models:make", "diff_models:make"], capsys, 0)
    found = output(["diff_models:make", "diff_models:other"], capsys, 1)
    assert "4 differs" in found


def test_values_that_are_not_finite(folder: Path, capsys: pytest.CaptureFixture[str]):
    save_file({"w": torch.tensor([1.0, float("nan")])}, folder / "nan.safetensors")
    found = json.loads(output(["nan.safetensors", "nan.safetensors", "--json"], capsys, 0))
    assert found["rows"][0]["std_a"] is None


def test_bad_input(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "config.json").write_text("{}")
    for other, words in (("config.json", "has no values"), ("nowhere", "is not there")):
        assert main(["diff", "a.safetensors", other]) == 2
        assert words in one_line(capsys.readouterr().err)
    assert main(["diff", "a.safetensors"]) == 2
    one_line(capsys.readouterr().err)

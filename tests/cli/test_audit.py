"""`initrate audit`: the table, the findings, the JSON, the exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel

from initrate.cli import main
from initrate.frameworks.torch import apply
from initrate.rule import Rule
from tests.cli.process import one_line


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of one model: by γ 0.6, by another rate for queries and keys, and with eps 1e-2."""
    folder = tmp_path_factory.mktemp("saved")
    sizes: dict[str, Any] = {"n_layer": 3, "n_embd": 64, "n_head": 4, "vocab_size": 211}
    tokens: dict[str, Any] = {"n_positions": 32, "bos_token_id": 0, "eos_token_id": 0}
    rules = {"plain": Rule(gamma=0.6), "qk": Rule(gamma=0.6, gamma_by_role={"qk": 0.8})}
    for name, rule in rules.items():
        model = GPT2LMHeadModel(GPT2Config(**sizes, **tokens))
        apply(model, rule=rule)
        model.config.__dict__.pop("initrate", None)
        model.save_pretrained(folder / name)
    model = GPT2LMHeadModel(GPT2Config(**sizes, **tokens, layer_norm_epsilon=1e-2))
    apply(model, gamma=0.6)
    model.config.__dict__.pop("initrate", None)
    model.save_pretrained(folder / "eps")
    return folder


def output(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert main(["audit", *arguments]) == code
    found, errors = capsys.readouterr()
    assert errors == ""
    return found


def test_a_model_as_the_rule_has_it(saved: Path, capsys: pytest.CaptureFixture[str]):
    found = output([str(saved / "plain"), "--gamma", "0.6"], capsys)
    assert "transformer.h.*.attn.c_attn.weight#query ×3" in found
    assert found.splitlines()[-1].endswith("no findings")
    assert "IR1" not in found


def test_findings_are_told_below_the_table(saved: Path, capsys: pytest.CaptureFixture[str]):
    found = output([str(saved / "plain"), "--gamma", "0.8"], capsys, code=1)
    assert "IR101: the rule has no effect on a tensor" in found
    assert "the rule gives 0.0359" in found
    assert "h.0.mlp.c_fc.weight" in found


def test_rates_by_role(saved: Path, capsys: pytest.CaptureFixture[str]):
    arguments = [str(saved / "qk"), "--gamma", "0.6"]
    output(arguments, capsys, code=1)
    output([*arguments, "--gamma-by-role", "qk=0.8"], capsys)


def test_waived_codes(saved: Path, capsys: pytest.CaptureFixture[str]):
    arguments = [str(saved / "eps"), "--gamma", "0.6"]
    assert "IR107" in output(arguments, capsys, code=1)
    assert "1 waived" in output([*arguments, "--waive", "IR107"], capsys)
    output([str(saved / "eps"), "--gamma", "0.7", "--waive", "IR107,IR101"], capsys)
    output([str(saved / "eps"), "--gamma", "0.7", "--waive", "IR107"], capsys, code=1)


def test_without_a_rule_stds_are_measured(saved: Path, capsys: pytest.CaptureFixture[str]):
    found = output([str(saved / "plain")], capsys)
    assert found.splitlines()[-1].startswith("no rule; ")
    line = next(line for line in found.splitlines() if "mlp.c_proj.weight" in line)
    # 256^-0.6 = 0.0359, in three layers of 256 × 64 values: within 2.8 % of it and of each other.
    stds = [float(word) for word in line.split() if word.startswith("0.03")]
    assert stds and stds == pytest.approx([256**-0.6] * len(stds), rel=5 / (2 * 256 * 64) ** 0.5)


def test_json_of_a_tensor_without_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    save_file({"a": torch.zeros(0, 3)}, tmp_path / "m.safetensors")
    found = json.loads(output([str(tmp_path / "m.safetensors"), "--json"], capsys))
    assert [(row["name"], row["measured_std"]) for row in found["rows"]] == [("a", None)]


def test_json(saved: Path, capsys: pytest.CaptureFixture[str]):
    found = json.loads(output([str(saved / "plain"), "--gamma", "0.8", "--json"], capsys, code=1))
    assert found["schema"] == 1 and found["ok"] is False
    assert {finding["code"] for finding in found["findings"]} == {"IR101"}
    row = next(row for row in found["rows"] if row["name"] == "transformer.h.2.mlp.c_fc.weight")
    assert row["d_in"] == 64 and row["as_planned"] is False
    assert row["gamma"] == pytest.approx(0.6, abs=0.01)
    assert row["low"] < row["std"] < row["high"] < row["measured_std"]


def test_all_shows_every_tensor(saved: Path, capsys: pytest.CaptureFixture[str]):
    found = output([str(saved / "plain"), "--all"], capsys)
    assert "transformer.h.2.mlp.c_fc.weight" in found and "×3" not in found


def test_a_bare_file_and_its_layout(saved: Path, capsys: pytest.CaptureFixture[str]):
    file, config = (str(saved / "plain" / x) for x in ("model.safetensors", "config.json"))
    assert "no rule" in output([file], capsys)
    assert "no findings" in output([file, "--gamma", "0.6", "--layout", config], capsys)
    assert main(["audit", file, "--gamma", "0.6"]) == 2
    assert "--layout CONFIG.json" in one_line(capsys.readouterr().err)


def test_copies_in_a_bare_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    values = torch.randn(64, 64)
    save_file({"a": values, "b": values.clone()}, tmp_path / "m.safetensors")
    found = output([str(tmp_path / "m.safetensors")], capsys, code=1)
    assert "IR103: several tensors hold one draw" in found
    assert "a, b: equal values" in found


BAD = {
    "a config": (["plain/config.json", "--gamma", "0.6"], "has no values to measure"),
    "nothing there": (["nowhere"], "is not there"),
    "a code that is none": (["plain", "--waive", "IR1"], "unknown finding to waive 'IR1'"),
    "a foreign file": (["plain/config.json.safetensors"], "not a safetensors file"),
    "a truncated file": (["cut.safetensors"], "is truncated"),
    "a pickle": (["plain/weights.bin"], "is a pickle"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(
    case: str, saved: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    arguments, words = BAD[case]
    (saved / "plain" / "config.json.safetensors").write_text("{" * 100)
    (saved / "plain" / "weights.bin").write_bytes(b"PK\x03\x04" + b"\0" * 50)
    whole = (saved / "plain" / "model.safetensors").read_bytes()
    (saved / "cut.safetensors").write_bytes(whole[:-100])
    # A folder has one safetensors file of its own name; further ones do not matter.
    monkeypatch.chdir(saved)
    assert main(["audit", *arguments]) == 2
    found, errors = capsys.readouterr()
    assert found == "" and words in one_line(errors)

"""`initrate plan`: the table, the JSON, the exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import GPT2Config

from initrate.cli import main
from tests.cli.process import one_line

OWN = """
import torch
from torch import nn

class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 64)
        self.kernel = nn.Parameter(torch.zeros(8, 64))

class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(12))
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("gpt2")
    sizes: dict[str, Any] = {"n_layer": 12, "n_embd": 64, "n_head": 4, "vocab_size": 211}
    GPT2Config(**sizes, architectures=["GPT2LMHeadModel"]).save_pretrained(folder)
    return str(folder / "config.json")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "plan_models.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    return "plan_models"


def output(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert main(arguments) == code
    found, errors = capsys.readouterr()
    assert errors == ""
    return found


def test_layers_share_a_row(config: str, capsys: pytest.CaptureFixture[str]):
    found = output(["plan", config, "--gamma", "0.5"], capsys)
    assert "transformer.h.*.attn.c_attn.weight#query ×12" in found
    assert "h.3." not in found
    assert "rule formula, γ 0.5; " in found.splitlines()[-1]
    line = next(line for line in found.splitlines() if "mlp.c_fc.weight" in line)
    assert line.split() == [
        "transformer.h.*.mlp.c_fc.weight",
        "×12",
        *("64", "×", "256", "mlp_in", "64", "0.125", "draw"),
    ]


def test_all_shows_every_tensor(config: str, capsys: pytest.CaptureFixture[str]):
    found = output(["plan", config, "--gamma", "0.5", "--all"], capsys)
    assert "transformer.h.3.attn.c_attn.weight#query" in found and "×12" not in found


def test_rates_by_role(config: str, capsys: pytest.CaptureFixture[str]):
    arguments = ["plan", config, "--gamma", "1", "--gamma-by-role", "qk=0.5", "--json"]
    found = json.loads(output([*arguments, "--gamma-by-role", "embedding=0"], capsys))
    stds = {row["name"]: row["std"] for row in found["rows"]}
    assert stds["transformer.h.0.attn.c_attn.weight#key"] == 0.125
    assert stds["transformer.h.0.attn.c_attn.weight#value"] == 1 / 64
    assert stds["transformer.wte.weight"] == 1.0


def test_a_named_rule(config: str, capsys: pytest.CaptureFixture[str]):
    found = json.loads(output(["plan", config, "--rule", "gpt2", "--json"], capsys))
    assert found["schema"] == 1 and found["target"] == config
    assert found["rule"]["name"] == "gpt2"
    stds = {row["name"]: row["std"] for row in found["rows"]}
    assert stds["transformer.h.0.mlp.c_proj.weight"] == pytest.approx(0.02 / 24**0.5)


def test_refused_tensors_are_named_and_the_exit_code_is_1(
    own: str, capsys: pytest.CaptureFixture[str]
):
    found = output(["plan", f"{own}:Own", "--gamma", "0.5"], capsys, code=1)
    assert "kernel" in found and "whose layout is not known" in " ".join(found.split())
    assert "1 refused (512 values)" in found


def test_numbers_that_are_names_of_layers_are_gathered(
    own: str, capsys: pytest.CaptureFixture[str]
):
    assert "layers.*.weight ×12" in output(["plan", f"{own}:Stack", "--gamma", "0.5"], capsys)


def test_include_and_exclude(config: str, capsys: pytest.CaptureFixture[str]):
    arguments = ["plan", config, "--gamma", "0.5", "--json", "--include", "transformer.h.0.*"]
    found = json.loads(output([*arguments, "--exclude", "*.c_proj.*"], capsys))
    drawn = {row["name"] for row in found["rows"] if row["action"] == "draw"}
    assert drawn == {
        "transformer.h.0.mlp.c_fc.weight",
        *(f"transformer.h.0.attn.c_attn.weight#{role}" for role in ("query", "key", "value")),
    }


def test_what_is_not_known_can_be_kept(own: str, capsys: pytest.CaptureFixture[str]):
    arguments = ["plan", f"{own}:Own", "--gamma", "0.5", "--unknown", "keep", "--json"]
    found = json.loads(output(arguments, capsys))
    assert {row["name"]: row["action"] for row in found["rows"]}["kernel"] == "keep"


def test_a_config_without_a_class_is_its_base_model_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=11).save_pretrained(tmp_path)
    assert main(["plan", str(tmp_path / "config.json"), "--gamma", "0.5", "--json"]) == 0
    found, errors = capsys.readouterr()
    assert "lm_head" not in found and errors.count("\n") == 1
    assert errors.startswith("note: ") and "names no architecture" in errors


BAD = {
    "no rule": (["--json"], "plan needs a rule: give one, as in --gamma 0.8"),
    "a role twice": (
        ["--gamma", "1", "--gamma-by-role", "qk=1", "--gamma-by-role", "qk=2"],
        "names 'qk' twice",
    ),
    "a rate without effect": (
        ["--rule", "gpt2", "--gamma-by-role", "qk=1"],
        "each of its roles has a draw of its own",
    ),
    "a rate of roles alone": (["--gamma-by-role", "qk=0.5"], "--gamma-by-role is given alone"),
    "a rate that is no number": (["--gamma", "small"], "'small'"),
    "a rate that is not finite": (["--gamma", "nan"], "finite"),
    "a rate beyond float32": (["--gamma", "99"], "float32"),
    "a role that is none": (["--gamma", "1", "--gamma-by-role", "qkk=1"], "did you mean 'qk'"),
    "a role without a rate": (["--gamma", "1", "--gamma-by-role", "qk"], "ROLE=GAMMA"),
    "a rule that is none": (["--rule", "gtp2"], "did you mean 'gpt2'"),
    "a rule without a rate": (["--rule", "gpt2", "--gamma", "1"], "it has no gamma"),
    "an unknown option": (["--gama", "1"], "did you mean '--gamma'"),
    "a pattern that means nothing": (["--gamma", "1", "--include", "hh.*"], "no tensor has such"),
    "an unknown way": (["--gamma", "1", "--unknown", "skip"], "skip"),
    "a layout of a config": (["--gamma", "1", "--layout", "x.json"], "leave it out"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str, config: str, capsys: pytest.CaptureFixture[str]):
    arguments, words = BAD[case]
    assert main(["plan", config, *arguments]) == 2
    found, errors = capsys.readouterr()
    assert found == "" and words in one_line(errors)


@pytest.mark.parametrize("arguments", [[], ["nowhere", "--gamma", "1"]])
def test_no_target(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(["plan", *arguments]) == 2
    one_line(capsys.readouterr().err)

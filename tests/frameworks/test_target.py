"""Targets: what a word of the command line names, and what is refused in one line."""

from __future__ import annotations

import copy
import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2LMHeadModel

from initrate.errors import InputError
from initrate.frameworks import _checkpoint
from initrate.frameworks._target import Which, open_target
from initrate.frameworks.torch import audit as audit_model
from initrate.frameworks.torch import plan as plan_model
from initrate.rule import Rule, named_rule
from tests.frameworks.checkpoints import RULE, gpt2_config, make_checkpoints


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoints(tmp_path_factory.mktemp("saved"))


@pytest.fixture(scope="module")
def model(saved: Path) -> GPT2LMHeadModel:
    return GPT2LMHeadModel.from_pretrained(saved / "full")


def test_the_plan_of_a_config_is_that_of_its_model(saved: Path, model: GPT2LMHeadModel):
    found = open_target(str(saved / "full" / "config.json")).plan(RULE)
    assert found == plan_model(model, rule=RULE)
    assert found == open_target(str(saved / "full")).plan(RULE)


@pytest.mark.parametrize("name", ["full", "shards", "headless"])
def test_a_folder_measures_what_the_model_does(name: str, saved: Path, model: GPT2LMHeadModel):
    found = open_target(str(saved / name)).audit(RULE)
    assert found.ok, found.findings
    expected = audit_model(model, rule=RULE)
    stds = {row.name: row.std for row in expected.rows}
    assert {row.name: row.std for row in found.rows} == pytest.approx(stds)


def test_of_the_base_model_names_have_no_prefix(saved: Path):
    found = open_target(str(saved / "base")).audit(RULE)
    assert found.ok and "h.0.attn.c_attn.weight#query" in {row.name for row in found.rows}


def test_short_types_are_measured(saved: Path):
    found = open_target(str(saved / "bf16")).audit(RULE)
    assert found.ok, found.findings
    assert open_target(str(saved / "bf16")).audit(Rule(gamma=0.6)).ok is False


def test_stacked_experts_are_stored_one_by_one(saved: Path):
    found = open_target(str(saved / "mixtral")).audit(Rule(gamma=0.6))
    assert found.ok, found.findings
    rows = {row.name: row for row in found.rows}
    down = rows["model.layers.0.mlp.experts.down_proj"]
    assert down.measured.size == 4 * 32 * 48
    assert down.gamma == pytest.approx(0.6, abs=0.02)
    gates = [row for name, row in rows.items() if "experts.gate_up_proj" in name]
    assert sum(row.measured.size for row in gates) == 2 * 2 * 4 * 32 * 48


def test_a_bare_file_is_measured_without_a_rule(saved: Path):
    target = open_target(str(saved / "full" / "model.safetensors"))
    found = target.audit(None)
    assert found.ok and found.rule is None
    assert {row.plan.role for row in found.rows} == {"?"}
    with pytest.raises(InputError, match=r"give the model's config by --layout CONFIG\.json"):
        target.audit(RULE)
    with pytest.raises(InputError, match="--layout"):
        target.plan(RULE)


def test_a_layout_says_what_a_bare_file_holds(saved: Path):
    file, config = str(saved / "full" / "model.safetensors"), str(saved / "full" / "config.json")
    target = open_target(file, layout=config)
    assert target.audit(RULE).ok
    assert target.plan(RULE) == open_target(config).plan(RULE)


def test_a_config_has_no_values(saved: Path):
    target = open_target(str(saved / "full" / "config.json"))
    with pytest.raises(InputError, match="has no values to measure"):
        target.audit(RULE)
    with pytest.raises(InputError, match="has no values"):
        target.values()


def test_without_a_rule_a_folder_is_measured(saved: Path):
    found = open_target(str(saved / "full")).audit(None)
    assert found.ok and found.rule is None
    assert found.gamma_by_role()["query"] == pytest.approx(0.7, abs=0.02)


def test_the_rule_that_the_config_has_written_down(saved: Path, tmp_path: Path):
    shutil.copytree(saved / "full", tmp_path / "copy")
    config = tmp_path / "copy" / "config.json"
    plain = json.loads(config.read_text())
    config.write_text(json.dumps(plain | {"initrate": {"rule": RULE.to_dict(), "seed": 1}}))
    found = open_target(str(tmp_path / "copy")).audit(None)
    assert found.ok and found.rule == RULE
    assert not open_target(str(tmp_path / "copy")).audit(Rule(gamma=0.9)).ok
    config.write_text(json.dumps(plain | {"initrate": {"rule": {"gamma": "0.6"}, "seed": 1}}))
    with pytest.raises(InputError, match=r"gamma is '0\.6'"):
        open_target(str(tmp_path / "copy")).audit(None)


def rewritten(saved: Path, folder: Path, change) -> str:
    """A copy of the full folder with other tensors."""
    shutil.copytree(saved / "full", folder / "copy")
    tensors = load_file(folder / "copy" / "model.safetensors")
    save_file(change(tensors), folder / "copy" / "model.safetensors")
    return str(folder / "copy")


def test_tensors_that_the_model_lacks_and_those_that_the_files_lack(saved: Path, tmp_path: Path):
    def change(tensors: dict) -> dict:
        tensors["extra.weight"] = torch.ones(3) + torch.arange(3)
        del tensors["transformer.wpe.weight"]
        return tensors

    target = open_target(rewritten(saved, tmp_path, change))
    found = target.audit(RULE)
    assert {(finding.code, finding.names) for finding in found.findings} == {
        ("IR111", ("extra.weight",)),
        ("IR111", ("transformer.wpe.weight",)),
    }
    assert target.audit(None).ok


def test_codes_of_a_quantized_tensor_are_not_measured(saved: Path, tmp_path: Path):
    def change(tensors: dict) -> dict:
        tensors["transformer.wpe.weight"] = torch.zeros(32, 64, dtype=torch.int8)
        return tensors

    found = open_target(rewritten(saved, tmp_path, change)).audit(RULE)
    assert {finding.names for finding in found.findings} == {("transformer.wpe.weight",)}
    assert "stored as codes" in " ".join(map(str, found.findings))


def test_both_names_of_a_tied_weight_may_be_stored(saved: Path, tmp_path: Path):
    def change(tensors: dict) -> dict:
        tensors["lm_head.weight"] = tensors["transformer.wte.weight"].clone()
        return tensors

    assert open_target(rewritten(saved, tmp_path, change)).audit(RULE).ok


def test_only_the_head_of_a_tied_weight_may_be_stored(saved: Path, tmp_path: Path):
    def change(tensors: dict) -> dict:
        tensors["lm_head.weight"] = tensors.pop("transformer.wte.weight")
        return tensors

    assert open_target(rewritten(saved, tmp_path, change)).audit(RULE).ok


def test_the_config_of_another_model_is_refused(saved: Path, tmp_path: Path):
    shutil.copytree(saved / "full", tmp_path / "copy")
    gpt2_config(n_embd=32, architectures=["GPT2LMHeadModel"]).save_pretrained(tmp_path / "copy")
    with pytest.raises(InputError, match="the config is that of another model"):
        open_target(str(tmp_path / "copy")).audit(RULE)


def test_patterns_choose_among_the_tensors_of_files(saved: Path):
    which = Which(include=("transformer.h.*",), exclude=("*.bias",))
    rows = {row.name: row for row in open_target(str(saved / "full")).audit(RULE, which).rows}
    kept = {name for name, row in rows.items() if row.plan.action == "keep"}
    assert "transformer.wte.weight" in kept and "transformer.h.0.mlp.c_fc.weight" not in kept


def test_patterns_choose_in_a_bare_file(tmp_path: Path):
    save_file({"a": torch.ones(3), "b": torch.ones(3)}, tmp_path / "m.safetensors")
    target = open_target(str(tmp_path / "m.safetensors"))
    assert [row.name for row in target.audit(None, Which(include=("b",))).rows] == ["b"]
    with pytest.raises(InputError, match="no tensor has such a name"):
        target.audit(None, Which(exclude=("c*",)))


def test_a_tensor_in_two_shards_is_refused(tmp_path: Path):
    for name in ("a", "b"):
        save_file({"w": torch.ones(3), name: torch.ones(3)}, tmp_path / f"{name}.safetensors")
    places = {"w": "a.safetensors", "a": "a.safetensors", "b": "b.safetensors"}
    (tmp_path / _checkpoint.INDEX).write_text(json.dumps({"weight_map": places}))
    with pytest.raises(
        InputError, match=r"'w' is in b\.safetensors, and it says in a\.safetensors"
    ):
        open_target(str(tmp_path))


def test_pickled_weights_are_never_opened(saved: Path, tmp_path: Path):
    shutil.copy(saved / "full" / "config.json", tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80")
    with pytest.raises(InputError, match=r"pytorch_model\.bin, a pickle, which is never opened"):
        open_target(str(tmp_path))
    torch.save({"w": torch.ones(3)}, tmp_path / "weights.pt")
    with pytest.raises(InputError, match=r"is a pickle, as torch\.save writes it"):
        open_target(str(tmp_path / "weights.pt"))


def test_folders_that_name_no_model(saved: Path, tmp_path: Path):
    with pytest.raises(InputError, match=r"holds neither config\.json nor safetensors"):
        open_target(str(tmp_path))
    for name in "ab":
        save_file({"w": torch.ones(3)}, tmp_path / f"{name}.safetensors")
    with pytest.raises(InputError, match="has 2 safetensors files"):
        open_target(str(tmp_path))
    (tmp_path / "b.safetensors").unlink()
    assert list(open_target(str(tmp_path)).values()) == ["w"]


@pytest.mark.parametrize("word", ["nowhere", "nowhere/config.json", "a\0b", "x" * 5000, "a:b:c"])
def test_what_is_not_there(word: str):
    with pytest.raises(InputError, match=r"is not there: expected a config\.json, a model folder"):
        open_target(word)


FUNCTIONS = """
import sys
import torch
from torch import nn

print("printed while it is imported")

def make():
    print("printed while it is called")
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))

class Models:
    @staticmethod
    def small():
        return make()

def broken():
    raise RuntimeError("two\\nlines")

def quits():
    sys.exit(3)

def needs(size):
    return size

def nothing():
    return None

value = 3
"""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_models.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_models", raising=False)
    return "own_models"


def test_a_function_makes_the_model(functions: str, capsys: pytest.CaptureFixture[str]):
    before = list(sys.path)
    target = open_target(f"{functions}:make")
    assert sys.path == before
    assert [row.d_in for row in target.plan(Rule(gamma=0.5)) if row.action == "draw"] == [64, 256]
    assert {finding.code for finding in target.audit(Rule(gamma=0.7)).findings} == {"IR101"}
    assert target.audit(Rule(gamma=0.7), waive=["IR101"]).ok
    assert target.audit(None).ok
    assert list(open_target(f"{functions}:Models.small").values()) == [
        "0.weight",
        "0.bias",
        "2.weight",
        "2.bias",
    ]
    output, errors = capsys.readouterr()
    assert output == "" and "printed while it is called" in errors


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("own_models:broken", "own_models:broken gives no model: RuntimeError: two lines"),
        ("own_models:quits", "SystemExit: 3"),
        ("own_models:needs", "TypeError: needs"),
        ("own_models:absent", "AttributeError"),
        ("own_models:value", "is int: expected a function"),
        ("no_such_module:make", "ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_a_function_that_gives_no_model(functions: str, word: str, words: str):
    with pytest.raises(InputError) as raised:
        open_target(word)
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_a_function_that_gives_something_else(functions: str):
    with pytest.raises(InputError, match=r"model is NoneType: expected a torch\.nn\.Module"):
        open_target(f"{functions}:nothing").plan(RULE)


def test_a_layout_goes_with_a_bare_file(functions: str, saved: Path):
    config = str(saved / "full" / "config.json")
    for word in (str(saved / "full"), config, f"{functions}:make"):
        with pytest.raises(InputError, match="it goes with a safetensors file"):
            open_target(word, layout=config)


def test_values_have_equal_digests_where_all_bits_are(saved: Path, model: GPT2LMHeadModel):
    full, shards = (open_target(str(saved / name)).values() for name in ("full", "shards"))
    assert {name: x.digest for name, x in full.items()} == {
        name: x.digest for name, x in shards.items()
    }
    from initrate.frameworks._target_function import FunctionTarget

    for folder, made in (("full", model), ("bf16", copy.deepcopy(model).bfloat16())):
        stored = open_target(str(saved / folder)).values()
        held = FunctionTarget("model", made).values()
        assert stored.keys() == held.keys()
        assert all(stored[name].digest == held[name].digest for name in stored)
        stds = {name: x.measured.std for name, x in stored.items() if x.measured}
        assert {name: x.measured.std for name, x in held.items() if x.measured} == (
            pytest.approx(stds)
        )


def test_a_missing_library_is_named_with_its_extra(saved: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match=r"pip install 'initrate\[hf\]'"):
        open_target(str(saved / "full")).plan(RULE)
    # Without a rule, a bare file needs neither.
    assert open_target(str(saved / "full" / "model.safetensors")).audit(None).ok


def test_the_std_of_gpt2_small_at_gamma_08(tmp_path: Path):
    """d_in of Conv1D, whose weight is [in, out]: 768 for c_attn and c_fc, 3072 for c_proj."""
    gpt2_config(n_embd=768, n_head=12, n_layer=1).save_pretrained(tmp_path)
    found = open_target(str(tmp_path / "config.json")).plan(Rule(gamma=0.8))
    rows = {row.name.split(".", 2)[-1]: row for row in found if row.name.startswith("h.0.")}
    assert rows["attn.c_attn.weight#query"].std == pytest.approx(0.00492, abs=5e-6)
    assert rows["mlp.c_fc.weight"].std == pytest.approx(0.00492, abs=5e-6)
    assert rows["mlp.c_proj.weight"].std == pytest.approx(0.00162, abs=5e-6)
    assert named_rule("gpt2").gamma is None

"""Cells: their tables and ids."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from initrate.errors import InputError
from initrate.model import ModelConfig
from initrate.rule import Rule, Uniform, named_rule
from initrate.study import Cell, one_rate
from initrate.study._cell import rates_that_differ
from initrate.study._sections import digest
from initrate.tasks import variant
from initrate.training import Seeds, Training, window


def _cell(**changes: object) -> Cell:
    sections = {
        "task": variant("34-wrong+probe", pool=5000),
        "model": ModelConfig(norm_eps=1e-12),
        "rule": Rule(gamma=0.8, gamma_by_role={"qk": 0.5}, draws={"mlp_in": Uniform(gamma=0.5)}),
        "training": Training(clip_norm=None, lr_final=1e-5, decay_schedule=window(5, 20)),
        "seeds": Seeds(init=1, order=2),
    }
    return Cell(**{**sections, **changes})  # pyright: ignore[reportArgumentType]


def test_a_cell_comes_back_from_json() -> None:
    cell = _cell()
    read = Cell.from_dict(json.loads(json.dumps(cell.to_dict())))
    assert read == cell and read.id == cell.id
    assert cell.id == digest(cell.to_dict())[:12]


def test_the_id_is_the_same_in_another_process() -> None:
    code = "from tests.study.test_cell import _cell\nprint(_cell().id)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."]), "PYTHONHASHSEED": "7"}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == _cell().id
    assert len(_cell().id) == 12 and int(_cell().id, 16) >= 0


def test_equal_numbers_have_equal_ids() -> None:
    whole, broken = (_cell(training=Training(weight_decay=w, lr=1)) for w in (1, 1.0))
    assert whole.id == broken.id


@pytest.mark.parametrize(
    "changes",
    [
        {"task": variant("34-wrong")},
        {"model": ModelConfig()},
        {"rule": Rule(gamma=0.8)},
        {"training": Training()},
        {"seeds": Seeds()},
    ],
)
def test_whatever_differs_makes_another_id(changes: dict[str, object]) -> None:
    assert _cell(**changes).id != _cell().id


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda t: t.update(modle={}), "did you mean 'model'"),
        (lambda t: t["model"].update(n_layer=2), "did you mean 'n_layers'"),
        (lambda t: t["training"].update(learning=2), "training field"),
        (lambda t: t["rule"].update(gama=2), "did you mean 'gamma'"),
        (lambda t: t["task"].update(lenght=2), "did you mean 'length'"),
        (lambda t: t["seeds"].update(inti=2), "did you mean 'init'"),
        (lambda t: t["seeds"].update(init=-1), "seed is -1"),
        (lambda t: t["seeds"].update(init=True), "seed is True"),
        (lambda t: t["seeds"].update(init=2**63), "seed is"),
        (lambda t: t.update(model=3), "model is 3"),
        (lambda t: t["training"].update(decay_schedule="linear"), "decay_schedule"),
        (lambda t: t["training"].update(decay_schedule={"window": [1]}), "decay_schedule"),
        (lambda t: t["training"].update(decay_schedule={"window": [1, 2, 3]}), "decay_schedule"),
        (lambda t: t["training"].update(decay_schedule={"piecewise": [[1]]}), "expected .step"),
        (lambda t: t["training"].update(decay_schedule={"piecewise": [[1, "a"]]}), "expected .st"),
        (lambda t: t["training"].update(loss_positions="all"), "whole numbers"),
        (lambda t: t["rule"].pop("draws") and t["rule"].update(name="formla"), "did you mean"),
    ],
)
def test_tables_that_are_no_cell(spoil: object, says: str) -> None:
    table = json.loads(json.dumps(_cell().to_dict()))
    spoil(table)  # pyright: ignore[reportCallIssue]
    with pytest.raises(InputError, match=says) as caught:
        Cell.from_dict(table)
    assert "\n" not in str(caught.value)


def test_one_rate() -> None:
    assert one_rate(Rule(gamma=0.7)) == 0.7
    assert one_rate(Rule(gamma=0.7, gamma_by_role={"mlp": 0.7})) == 0.7
    assert one_rate(Rule(gamma=0.7, gamma_by_role={"mlp": 0.5})) is None
    assert one_rate(named_rule("gpt2")) is None
    assert one_rate(named_rule("torch-default")) is None


def test_rates_that_differ() -> None:
    assert rates_that_differ(Rule(gamma=0.7)) == {}
    assert rates_that_differ(named_rule("gpt2")) == {}
    rule = Rule(gamma=0.7, gamma_by_role={"qk": 0.5, "mlp_out": 0.9})
    assert rates_that_differ(rule) == {
        "embedding": 0.7,
        "position": 0.7,
        "qk": 0.5,
        "vo": 0.7,
        "mlp_in": 0.7,
        "mlp_gate": 0.7,
        "mlp_out": 0.9,
        "unembedding": 0.7,
    }

"""The examples run as they are and do what they say."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

from initrate.rule import Rule

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def threads():
    """An example may set the number of threads; the tests after it have theirs."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def run(name: str) -> Any:
    return runpy.run_path(str(EXAMPLES / name))["main"]()


def test_torch_loop():
    found = run("torch_loop.py")
    assert found["last"] < 0.8 * found["first"]
    assert found["decayed"] == pytest.approx(30 * 1e-3)


def test_huggingface_trainer():
    found = run("huggingface_trainer.py")
    assert found["rule"] == (Rule(gamma=0.8), 0)
    assert "γ = 0.8" in found["card"]
    decays = {e["step"]: e["initrate/weight_decay/mlp"] for e in found["log"]
              if "initrate/weight_decay/mlp" in e}  # fmt: skip
    assert decays == {0: 0.2, 2: 0.2, 4: 0.1}


def test_optuna_search(capsys: pytest.CaptureFixture[str]):
    study = run("optuna_search.py")
    assert len(study.trials) == 6
    assert set(study.best_params) == {"gamma", "weight_decay"}
    assert "best of 6" in capsys.readouterr().out

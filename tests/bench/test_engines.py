"""All engines train the same models: the same logits, the same losses step by step."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from initrate.bench import (
    ENGINES,
    PlainDecoder,
    Problem,
    lacking,
    plain_optimizer,
    plain_step,
)
from initrate.bench._engines import run_of
from tests.bench.small import KINDS, small

THERE = [engine for engine in ENGINES if lacking(engine) is None]
STEPS = 5
# Compiling takes a minute: one kind, for what is compiled is the function of the eager engine.
CASES = [
    (engine, name) for engine in THERE for name in (KINDS if engine != "compiled" else ["laptop"])
]
# What torch.compile loads at its first use warns of torch itself.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.*:DeprecationWarning")


def plain_losses(problem: Problem, n_steps: int) -> list[list[float]]:
    """Return the loss of each model before each step, in float64, by a loop of its own."""
    weights = problem.weights()
    losses = []
    for index in range(problem.size.n_models):
        model = PlainDecoder(problem.size.model, problem.size.vocabulary).double()
        model.load_canonical({name: array[index] for name, array in weights.items()})
        optimizer = plain_optimizer(model, problem.training)
        own = []
        for step in range(n_steps):
            tokens, targets = (torch.from_numpy(part[index]) for part in problem.batch(step))
            own.append(
                plain_step(
                    model,
                    optimizer,
                    training=problem.training,
                    step=step,
                    tokens=tokens,
                    targets=targets,
                )
            )
        losses.append(own)
    return np.transpose(losses).tolist()


def rounds_of(engine: str, problem: Problem, n_rounds: int) -> list[Sequence[float]]:
    """Return what the engine tells after each round; it must stop when it is told to."""
    told: list[Sequence[float]] = []

    def on_round(losses: Sequence[float]) -> bool:
        told.append(losses)
        return len(told) < n_rounds

    run_of(engine)(problem, on_round)
    return told


@pytest.mark.parametrize(("engine", "name"), CASES)
def test_losses_agree_with_the_plain_way(engine: str, name: str) -> None:
    """Float32 against float64; a loss is a mean of 32 sequences or more, with errors near 1e-6."""
    problem = Problem(small(name), steps=1, threads=1)
    expected = plain_losses(problem, STEPS)
    told = rounds_of(engine, problem, STEPS)
    assert len(told) == STEPS
    np.testing.assert_allclose(told, expected, rtol=1e-4)
    # The steps did something: what agrees is not the loss of the initial weights alone.
    assert np.abs(np.array(expected)[4] / np.array(expected)[0] - 1).max() > 1e-3


@pytest.mark.parametrize("engine", [engine for engine in THERE if engine != "compiled"])
def test_a_round_of_several_steps_tells_their_mean(engine: str) -> None:
    problem = Problem(small("laptop"), steps=3, threads=1)
    expected = np.reshape(plain_losses(problem, 6), (2, 3, -1)).mean(1)
    np.testing.assert_allclose(rounds_of(engine, problem, 2), expected, rtol=1e-4)


@pytest.mark.parametrize("name", KINDS)
def test_jax_logits_agree_with_the_plain_decoder(name: str) -> None:
    """On its own, for a loss hides much of a logit."""
    logits = importlib.import_module("initrate.bench._jax").logits
    problem = Problem(small(name), steps=1, threads=1)
    weights, (tokens, _) = problem.weights(), problem.batch(0)
    for index in range(problem.size.n_models):
        own = {name: array[index] for name, array in weights.items()}
        plain = PlainDecoder(problem.size.model, problem.size.vocabulary)
        plain.load_canonical(own)
        expected = plain(torch.from_numpy(tokens[index])).detach().numpy()
        found = np.asarray(logits(problem.size.model, own, tokens[index]))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
        assert np.abs(expected).max() > 0.1


def test_the_process_of_jax_is_without_torch() -> None:
    """Else its peak memory would be that of two frameworks."""
    code = "import sys, initrate.bench._worker, initrate.bench._jax; print(*sys.modules)"
    child = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=True,
        capture_output=True,
        text=True,
    )
    loaded = child.stdout.split()
    assert "jax" in loaded and "torch" not in loaded


def test_every_engine_here_has_a_line() -> None:
    assert set(THERE) <= set(ENGINES)
    assert all(line and "\n" not in line for line in ENGINES.values())


@pytest.mark.parametrize(
    ("engine", "absent", "words"),
    [
        ("jax", "jax", "jax is not installed: pip install jax"),
        ("jax", "optax", "optax is not installed: pip install optax"),
    ],
)
def test_a_package_that_is_absent_is_named(
    engine: str, absent: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda p: None if p == absent else find(p))
    assert lacking(engine) == words
    assert lacking("eager") is None


def test_no_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert "no C++ compiler" in (lacking("compiled") or "")
    compiler = tmp_path / "my-c++"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", f"{compiler} -O2")
    assert lacking("compiled") is None

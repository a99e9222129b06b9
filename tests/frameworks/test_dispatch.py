"""Which framework a model is of, without importing any."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import keras
import numpy as np
import pytest
import torch
from torch import nn

import initrate
from initrate.errors import InputError
from initrate.frameworks import _dispatch
from initrate.frameworks._dispatch import arrays_of, framework_of
from initrate.rule import Rule


def child(code: str) -> Any:
    """What a fresh interpreter prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_models_of_torch():
    assert framework_of(nn.Linear(2, 2)) == "torch"
    assert framework_of(nn.DataParallel(nn.Linear(2, 2))) == "torch"


OTHERS = """
import json, os, warnings
os.environ["KERAS_BACKEND"] = "torch"
warnings.simplefilter("ignore")
import jax, keras, numpy
import jax.numpy as jnp
from flax import nnx
from initrate.frameworks._dispatch import framework_of

print(json.dumps([
    framework_of({"w": jnp.zeros((2, 2))}),
    framework_of(jnp.zeros((2, 2))),
    framework_of([jax.ShapeDtypeStruct((2, 2), "float32")]),
    framework_of({"w": numpy.zeros(3)}),
    framework_of(nnx.Linear(2, 2, rngs=nnx.Rngs(0))),
    framework_of(keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])),
    framework_of(keras.layers.Dense(2)),
]))
"""


def test_models_of_other_frameworks():
    """In one process, for they take seconds to load. Keras runs on torch and still is Keras."""
    assert child(OTHERS) == ["jax"] * 5 + ["keras"] * 2


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("gpt2", "model is the text 'gpt2'"),
        (None, "model is NoneType"),
        (nn.Linear, "model is the class Linear, not a model made of it"),
        (3, "model is int"),
        ({"a": 3, "b": "text"}, "model is dict"),
        ([], "model is list"),
    ],
)
def test_what_is_no_model(model: object, words: str):
    with pytest.raises(InputError, match=words):
        framework_of(model)
    with pytest.raises(InputError, match=r"expected a torch\.nn\.Module, a Keras model, or a tree"):
        initrate.plan(model, gamma=0.5)


def test_a_tree_of_numpy_alone_is_of_no_framework():
    code = (
        "import json, sys, numpy\nfrom initrate.frameworks._dispatch import framework_of\n"
        "try:\n    framework_of({'w': numpy.zeros(3)})\n"
        "except ValueError as error:\n"
        "    heavy = [x for x in ('torch', 'jax', 'keras', 'flax') if x in sys.modules]\n"
        "    print(json.dumps({'error': str(error), 'heavy': heavy}))"
    )
    found = child(code)
    assert found["error"].startswith("model is dict: expected")
    assert found["heavy"] == []


def test_the_public_functions_load_no_framework():
    code = (
        "import json, sys, initrate\n"
        "initrate.plan, initrate.apply, initrate.audit, initrate.assert_init, initrate.Layout\n"
        "initrate.param_groups, initrate.preflight, initrate.Audit, initrate.Plan\n"
        "heavy = ('torch', 'jax', 'keras', 'flax', 'transformers', 'tyro', 'rich')\n"
        "print(json.dumps({'heavy': [x for x in heavy if x in sys.modules]}))"
    )
    assert child(code) == {"heavy": []}


def test_options_reach_the_framework():
    part = nn.Linear(64, 64)
    model = nn.Sequential(part, nn.Linear(64, 64))
    found = initrate.plan(model, gamma=0.5, exclude="1.*")
    assert [row.action for row in found] == ["draw", "zero", "keep", "keep"]
    assert initrate.apply(model, gamma=0.5, seed=3, exclude="1.*").ok
    first = part.weight.detach().clone()
    initrate.apply(model, gamma=0.5, seed=4)
    assert not torch.equal(first, part.weight)
    initrate.apply(model, gamma=0.5, seed=3)
    assert torch.equal(first, part.weight)
    assert initrate.audit(model, rule=Rule(gamma=0.5), waive="IR101").ok
    groups = initrate.param_groups(model, weight_decay=0.1)
    assert sorted(group["weight_decay"] for group in groups) == [0.0, 0.1]


def test_layouts_and_unknown_reach_the_framework():
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kernel = nn.Parameter(torch.zeros(8, 64))

    assert [row.action for row in initrate.plan(Own(), gamma=0.5)] == ["refuse"]
    assert [row.action for row in initrate.plan(Own(), gamma=0.5, unknown="keep")] == ["keep"]
    layout = initrate.Layout(Own, kernel=("out", "in"))
    (row,) = initrate.plan(Own(), gamma=0.5, layouts=[layout])
    assert (row.action, row.d_in) == ("draw", 64)


@pytest.mark.parametrize("function", ["plan", "apply"])
def test_a_rule_must_be_given(function: str):
    with pytest.raises(InputError, match="neither gamma nor rule is given"):
        getattr(initrate, function)(nn.Linear(4, 4))


@pytest.mark.parametrize("function", ["plan", "apply", "audit", "assert_init"])
def test_a_rule_may_be_named(function: str):
    model = nn.Sequential(nn.Embedding(50, 64), nn.Linear(64, 64))
    rule = "paper-2405.05409"
    initrate.apply(model, rule=rule, gamma=0.6)
    getattr(initrate, function)(model, rule=rule, gamma=0.6)
    with pytest.raises(InputError, match="did you mean 'formula'"):
        getattr(initrate, function)(model, rule="formla")
    with pytest.raises(InputError, match="give one of the two"):
        getattr(initrate, function)(model, rule=Rule(gamma=0.5), gamma=0.5)


def test_a_function_that_a_framework_lacks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_dispatch, "framework_of", lambda model: "torch")
    with pytest.raises(InputError, match="fly is not there for models of torch"):
        _dispatch._adapter(None, "fly")


def test_arrays_of_a_model():
    last = nn.Linear(2, 3)
    model = nn.Sequential(nn.Linear(4, 2).bfloat16(), last)
    found = {name: (array.shape, dtype) for name, array, dtype in arrays_of(model)}
    assert found == {
        "0.weight": ((2, 4), "bfloat16"),
        "0.bias": ((2,), "bfloat16"),
        "1.weight": ((3, 2), "float32"),
        "1.bias": ((3,), "float32"),
    }
    arrays = {name: array for name, array, _ in arrays_of(model)}
    assert np.array_equal(arrays["1.weight"], last.weight.detach().numpy())


def test_an_example_is_refused_where_it_has_no_use():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    with pytest.raises(InputError, match="example is given for a model of Keras"):
        initrate.plan(model, gamma=0.5, example=[1])

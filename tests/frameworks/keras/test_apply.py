"""Values into a Keras model: in place, all or none, on each backend."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import keras
import numpy as np
import pytest

from initrate.errors import InputError
from initrate.frameworks.keras import Layout, apply, audit
from initrate.measure import std_interval
from initrate.rule import Rule


def model(dtype: str = "float32") -> Any:
    return keras.Sequential(
        [
            keras.Input((64,)),
            keras.layers.Dense(256, dtype=dtype),
            keras.layers.LayerNormalization(dtype=dtype),
            keras.layers.Dense(8, dtype=dtype),
        ]
    )


def kernel(made: Any) -> np.ndarray:
    return np.asarray(made.layers[0].kernel.value)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_values_follow_the_rule_in_the_type_of_the_layer(dtype: str):
    made = model(dtype)
    assert apply(made, gamma=0.5).ok
    low, high = std_interval(0.125, 64 * 256)
    assert low * 0.998 < float(kernel(made).astype(np.float32).std()) < high * 1.002
    assert kernel(made).dtype.name == dtype
    full = model()
    apply(full, gamma=0.5)
    assert np.array_equal(kernel(made), kernel(full).astype(kernel(made).dtype))


def test_gamma_rule_seed_and_mode_have_an_effect():
    def drawn(**options: Any) -> np.ndarray:
        made = model()
        apply(made, **options)
        return kernel(made)

    base = drawn(gamma=0.5)
    assert np.array_equal(base, drawn(rule=Rule(gamma=0.5)))
    assert np.allclose(base / 8, drawn(gamma=1.0))
    assert not np.array_equal(base, drawn(gamma=0.5, seed=1))
    made = model()
    before = kernel(made)
    found = apply(made, gamma=0.8, mode="rescale", waive=["IR104"])
    ratio = kernel(made) / before
    assert found.rows[0].std == pytest.approx(64**-0.8, rel=1e-5)
    assert ratio.std() / ratio.mean() < 1e-5


def test_a_second_time_nothing_is_assigned(monkeypatch: pytest.MonkeyPatch):
    made = model()
    apply(made, gamma=0.5, seed=2)
    values = [variable.value for variable in made.weights]
    apply(made, gamma=0.5, seed=2)
    assert all(v.value is old for v, old in zip(made.weights, values, strict=True))


def test_a_trained_model_is_refused_without_force_and_left_as_it_is():
    made = model()
    made.layers[1].gamma.assign(np.arange(256.0))
    before = kernel(made)
    with pytest.raises(InputError, match=r"layer_normalization\.gamma.*trained.*force=True"):
        apply(made, gamma=0.5)
    assert np.array_equal(kernel(made), before)
    apply(made, gamma=0.5, force=True)
    assert not np.array_equal(kernel(made), before)


def test_all_or_nothing():
    made = model()
    made.layers[2].kernel.assign(np.zeros((256, 8)))
    before = kernel(made)
    with pytest.raises(InputError, match="is zero: it cannot be rescaled"):
        apply(made, gamma=0.8, mode="rescale")
    assert np.array_equal(kernel(made), before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": "0.5"}, "gamma is '0.5'"),
        ({"gamma": float("inf")}, "expected a finite number"),
        ({"gamma": 0.5, "rule": Rule()}, "give one of the two"),
        ({}, "neither gamma nor rule"),
        ({"gamma": 0.5, "mode": "fill"}, "unknown mode"),
        ({"gamma": 0.5, "seed": "1"}, "seed is '1'"),
        ({"gamma": 0.5, "layouts": [3]}, "layouts has 3"),
        ({"gamma": 0.5, "layouts": [Layout("Own", w=("in", "out"))]}, "fits no parameter"),
        ({"gamma": 0.5, "exclude": "*.biass"}, "no tensor has such a name"),
        ({"gamma": 0.5, "force": 1}, "force is 1"),
    ],
)
def test_bad_options_leave_the_model(options: dict[str, Any], message: str):
    made = model()
    before = kernel(made)
    with pytest.raises(InputError, match=message) as caught:
        apply(made, **options)
    assert "\n" not in str(caught.value) and np.array_equal(kernel(made), before)


def test_the_audit_measures_and_finds():
    made = model()
    assert "IR101" in {finding.code for finding in audit(made, gamma=0.8).findings}
    apply(made, gamma=0.8)
    found = audit(made, gamma=0.8)
    assert found.ok and audit(made).rule is None
    assert found.rows[0].gamma == pytest.approx(0.8, abs=0.01)


CHILD = """
import hashlib, json, sys
import initrate.frameworks.keras as ik
import keras, numpy as np

values = {}
for dtype in ("float32", "bfloat16"):
    model = keras.Sequential(
        [keras.Input((64,)), keras.layers.Dense(256, dtype=dtype), keras.layers.Dense(8)]
    )
    found = ik.apply(model, gamma=0.5, seed=0)
    value = model.layers[0].kernel.value
    value = value.detach().float().numpy() if hasattr(value, "detach") else np.asarray(value)
    values[dtype] = hashlib.sha256(value.astype("float32").tobytes()).hexdigest(), found.ok
print(json.dumps([keras.backend.backend(), values, "torch" in sys.modules, "jax" in sys.modules]))
"""


def test_the_backends_hold_the_same_values_and_need_no_other():
    answers = {}
    for backend in ("jax", "torch"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", CHILD],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ
            | {"KERAS_BACKEND": backend, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        answers[backend] = json.loads(done.stdout.splitlines()[-1])
    assert answers["jax"][0] == "jax" and answers["torch"][0] == "torch"
    assert answers["jax"][1] == answers["torch"][1]
    assert all(ok for _, ok in answers["jax"][1].values())
    assert answers["jax"][2] is False

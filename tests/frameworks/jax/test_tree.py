"""Plain trees: layouts by path, types, placement, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from initrate.errors import InputError
from initrate.frameworks.jax import Layout, apply, audit, plan
from initrate.measure import std_interval
from initrate.rule import Rule

DENSE = Layout("*Dense_*", kernel=("in", "out"), bias="bias")


def tree(dtype: Any = jnp.float32) -> Any:
    return {
        "Dense_0": {"kernel": jnp.zeros((64, 256), dtype), "bias": jnp.ones(256, dtype)},
        "encoder": [{"Dense_1": {"kernel": jnp.zeros((256, 64), dtype)}}],
    }


def test_a_plain_tree_is_refused_by_name():
    with pytest.raises(InputError, match=r"3 of 3.*'Dense_0\.bias' is a leaf of a plain tree"):
        apply(tree(), gamma=0.5)


@pytest.mark.parametrize("pattern", ["*/Dense_*", "*.Dense_*", "*Dense_?"])
def test_layouts_by_path(pattern: str):
    layouts = [Layout(pattern, kernel=("in", "out"), bias="bias")]
    found = {row.name: row for row in plan(tree(), gamma=0.5, layouts=layouts)}
    assert found["Dense_0.kernel"].d_in == 64
    assert found["encoder.0.Dense_1.kernel"].d_in == 256
    assert found["Dense_0.bias"].record.of == "Dense_0.kernel"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_values_follow_the_rule_in_the_type_of_the_leaf(dtype: str):
    new, found = apply(tree(dtype), gamma=0.5, layouts=[DENSE])
    kernel = new["Dense_0"]["kernel"]
    assert kernel.dtype == dtype and found.ok
    low, high = std_interval(0.125, kernel.size)
    assert low * 0.998 < float(kernel.astype(jnp.float32).std()) < high * 1.002
    # What is drawn in a short type is the float32 draw, rounded once.
    full, _ = apply(tree(), gamma=0.5, layouts=[DENSE])
    assert np.array_equal(kernel, full["Dense_0"]["kernel"].astype(dtype))


def test_gamma_rule_seed_and_mode_have_an_effect():
    def kernel(**options: Any) -> Any:
        return np.asarray(apply(tree(), layouts=[DENSE], **options)[0]["Dense_0"]["kernel"])

    base = kernel(gamma=0.5)
    assert np.array_equal(base, kernel(rule=Rule(gamma=0.5)))
    assert np.allclose(base / 8, kernel(gamma=1.0))
    assert not np.array_equal(base, kernel(gamma=0.5, seed=1))
    drawn, _ = apply(tree(), gamma=0.5, layouts=[DENSE])
    rescaled, found = apply(drawn, gamma=0.8, mode="rescale", layouts=[DENSE])
    assert found.rows[1].std == pytest.approx(64**-0.8, rel=1e-5)
    ratio = np.asarray(rescaled["Dense_0"]["kernel"]) / base
    assert ratio.std() / ratio.mean() < 1e-5
    with pytest.raises(InputError, match="is zero: it cannot be rescaled"):
        apply(tree(), gamma=0.5, mode="rescale", layouts=[DENSE])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_is_not_rescaled(value: float):
    given = {"Dense_0": {"kernel": jnp.full((4, 4), value)}}
    with pytest.raises(InputError, match="has values that are not finite"):
        apply(given, gamma=0.5, mode="rescale", layouts=[DENSE])


def test_one_array_at_two_places_is_one_tensor():
    array = jnp.zeros((64, 64))
    found = plan({"a": array, "b": array}, gamma=0.5, layouts=[Layout("", a=("in", "out"))])
    assert [(row.name, row.record.aliases) for row in found] == [("a", ("b",))]
    new, _ = apply({"a": array, "b": array}, gamma=0.5, layouts=[Layout("", a=("in", "out"))])
    assert new["a"] is new["b"]


def test_numpy_arrays_stay_numpy_and_other_leaves_stay():
    given = {"fc": {"kernel": np.zeros((64, 8), np.float32)}, "step": 3, "ids": jnp.arange(4)}
    new, _ = apply(given, gamma=0.5, layouts=[Layout("fc", kernel=("in", "out"))])
    assert isinstance(new["fc"]["kernel"], np.ndarray) and new["step"] == 3
    assert new["ids"] is given["ids"] and not given["fc"]["kernel"].any()


def test_an_array_that_is_committed_to_no_device_stays_so():
    given = tree()
    assert not given["Dense_0"]["kernel"].committed
    new, _ = apply(given, gamma=0.5, layouts=[DENSE])
    assert not new["Dense_0"]["kernel"].committed
    held = jax.device_put(given, jax.devices()[0])
    new, _ = apply(held, gamma=0.5, layouts=[DENSE])
    assert new["Dense_0"]["kernel"].committed


def test_deleted_arrays_are_refused():
    given = tree()
    given["Dense_0"]["kernel"].delete()
    for act in (apply, audit):
        with pytest.raises(InputError, match="was deleted, or donated"):
            act(given, gamma=0.5, layouts=[DENSE])


def test_shapes_can_be_planned_but_not_drawn():
    shapes = jax.eval_shape(tree)
    assert len(plan(shapes, gamma=0.5, layouts=[DENSE])) == 3
    with pytest.raises(InputError, match="is a shape and has no values"):
        apply(shapes, gamma=0.5, layouts=[DENSE])


def test_traced_arrays_are_refused():
    with pytest.raises(InputError, match=r"is traced: call this outside of jax\.jit"):
        jax.jit(lambda t: apply(t, gamma=0.5, layouts=[DENSE])[0])(tree())


@pytest.mark.parametrize("dtype", ["complex64", "float8_e4m3fn"])
def test_other_types_are_refused_by_name(dtype: str):
    given = {"Dense_0": {"kernel": jnp.zeros((4, 4), dtype)}}
    (row,) = plan(given, gamma=0.5, layouts=[DENSE])
    assert row.reason.startswith(f"holds {dtype}")
    assert audit(given, layouts=[DENSE]).rows == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": "0.5"}, "gamma is '0.5': expected a finite number"),
        ({"gamma": float("nan")}, "expected a finite number"),
        ({"gamma": 0.5, "rule": Rule()}, "give one of the two"),
        ({}, "neither gamma nor rule"),
        ({"rule": 3}, "expected a Rule"),
        ({"gamma": 0.5, "seed": -1}, "seed is -1"),
        ({"gamma": 0.5, "mode": "fill"}, "unknown mode"),
        ({"gamma": 0.5, "unknown": "skip"}, "unknown way with unknown tensors"),
        ({"gamma": 0.5, "layouts": ["Dense"]}, "layouts has 'Dense'"),
        ({"gamma": 0.5, "layouts": DENSE}, "layouts has"),
        ({"gamma": 0.5, "layouts": [Layout("fc", kernel=("in", "out"))]}, "fits no parameter"),
        ({"gamma": 0.5, "layouts": [Layout("Dense_0", w=("in", "out"))]}, "fits no parameter"),
        ({"gamma": 0.5, "include": "Dens.*"}, "no tensor has such a name"),
        ({"gamma": 0.5, "force": "yes"}, "force is 'yes'"),
        ({"gamma": 0.5, "waive": 5, "layouts": [DENSE]}, "waive is 5: expected codes"),
        ({"gamma_by_role": {"qk": 0.5}, "rule": Rule()}, "put the rates into the rule"),
        ({"gamma": 0.5, "include": [3]}, "include has 3"),
        ({"gamma": 0.5, "waive": ["IR999"]}, "unknown finding to waive"),
        ({"rule": Rule(gamma=0.5, d_in_by_role={"mlp": "d_model"})}, "draws apart"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str):
    given = tree()
    with pytest.raises(InputError, match=message) as caught:
        apply(given, **{"layouts": [DENSE], **options})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("given", ["text", {}, {"step": 3}, [jnp.arange(3)], None])
def test_what_holds_no_floats_is_refused(given: Any):
    with pytest.raises(InputError, match="holds arrays of floats"):
        plan(given, gamma=0.5)


def test_the_audit_measures_and_finds():
    fresh = audit(tree(), gamma=0.5, layouts=[DENSE])
    assert "IR101" in {finding.code for finding in fresh.findings}
    new, _ = apply(tree(), gamma=0.7, layouts=[DENSE])
    found = audit(new, gamma=0.7, layouts=[DENSE])
    assert found.ok and audit(new, layouts=[DENSE]).rule is None
    assert found.rows[1].gamma == pytest.approx(0.7, abs=0.01)


CHILD = """
import json, os, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from initrate.frameworks.jax import Layout, apply

mesh = Mesh(np.array(jax.devices()), ("x",))
place = NamedSharding(mesh, PartitionSpec("x", None))
layouts = [Layout("", w=("in", "out"))]
whole = {"w": jnp.zeros((64, 100))}
spread = {"w": jax.device_put(whole["w"], place)}
new, found = apply(spread, gamma=0.5, layouts=layouts)
same, _ = apply(whole, gamma=0.5, layouts=layouts)
again, _ = apply(new, gamma=0.5, layouts=layouts)
print(json.dumps({
    "sharding": new["w"].sharding == place,
    "values": bool((np.asarray(new["w"]) == np.asarray(same["w"])).all()),
    "again": again["w"] is new["w"],
    "ok": found.ok,
    "others": [m for m in ("torch", "keras", "flax", "equinox", "optax") if m in sys.modules],
}))
"""


def test_shardings_are_kept_and_no_other_framework_is_imported():
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert json.loads(done.stdout) == {
        "sharding": True,
        "values": True,
        "again": True,
        "ok": True,
        "others": [],
    }

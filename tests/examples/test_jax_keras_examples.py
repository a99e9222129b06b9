"""The examples of JAX and Keras run as they are and do what they say."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["flax_nnx", "flax_linen", "equinox_module", "keras_model"])
def test_the_example_trains_from_the_rate_it_asks_for(name: str):
    found = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]()
    assert found["gamma"] == pytest.approx(0.7, abs=0.05)
    assert found["last"] < 0.9 * found["first"]

"""What an import costs: the package itself loads nothing, the base loads NumPy alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import initrate

HEAVY = (
    "jinja2",
    "matplotlib",
    "plotly",
    "polars",
    "rich",
    "safetensors",
    "scipy",
    "sklearn",
    "torch",
    "transformers",
    "tyro",
)


def child(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    return done.stdout


def loaded_by(code: str) -> set[str]:
    return set(json.loads(child(f"{code}\nimport json, sys\nprint(json.dumps(list(sys.modules)))")))


def test_the_package_loads_nothing_of_its_own() -> None:
    loaded = loaded_by("import initrate")
    assert {name for name in loaded if name.startswith("initrate.")} == set()
    assert "numpy" not in loaded


@pytest.mark.parametrize(
    "code",
    [
        "import initrate; initrate.Rule, initrate.named_rule, initrate.InputError",
        "from initrate import Gamma, Keep, Std, Uniform, Zero, gamma_from_std, std_from_gamma",
        "import initrate.files, initrate.rule, initrate.statistics, initrate.tasks",
    ],
)
def test_the_base_loads_no_framework(code: str) -> None:
    loaded = loaded_by(code)
    assert "numpy" in loaded
    assert not loaded.intersection(HEAVY)


@pytest.mark.parametrize(
    ("code", "limit"),
    [
        ("import initrate", 0.1),
        ("import initrate.rule, initrate.files, initrate.statistics", 0.25),
    ],
)
def test_what_an_import_takes_beyond_numpy(code: str, limit: float) -> None:
    timed = (
        f"import numpy\nimport time\nstart = time.process_time()\n{code}\n"
        "print(time.process_time() - start)"
    )
    # Processor time, and the least of five: other work on the machine only adds to it.
    assert min(float(child(timed)) for _ in range(5)) < limit


def test_public_names() -> None:
    for name in initrate.__all__:
        if name not in initrate._NAMESPACES:  # They need extras; their own tests load them.
            assert getattr(initrate, name) is not None
        assert name in dir(initrate)
    from initrate.rule import Rule

    assert initrate.Rule is Rule
    assert initrate.__version__.count(".") == 2


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'initrate' has no attribute 'Ruel'"):
        initrate.Ruel  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]

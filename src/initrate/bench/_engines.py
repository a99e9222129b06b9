"""The engines that are compared: where each lies, and what it needs to be there."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shlex
import shutil
from collections.abc import Callable
from typing import NamedTuple

from initrate.bench._problem import OnRound, Problem

OURS = "initrate"


class _Entry(NamedTuple):
    line: str
    module: str
    function: str = "run"
    needs: tuple[str, ...] = ()
    """Packages beyond those of the laboratory."""


_ENTRIES = {
    OURS: _Entry("the engine of initrate, clipping and logging included", "_ours"),
    "eager": _Entry("one nn.Module after another, torch.optim.AdamW", "_eager"),
    "compiled": _Entry("the same under torch.compile", "_eager", "run_compiled"),
    "vmap": _Entry("torch.func: stack_module_state, vmap of grad", "_vmapped"),
    "jax": _Entry("JAX: jit of vmap, scan over steps, optax.adamw", "_jax", needs=("jax", "optax")),
}

ENGINES: dict[str, str] = {name: entry.line for name, entry in _ENTRIES.items()}
"""The engines by name, each with a line on it."""


def run_of(engine: str) -> Callable[[Problem, OnRound], None]:
    """Return what trains a problem in rounds; ImportError where its framework is not there."""
    entry = _ENTRIES[engine]
    return getattr(importlib.import_module(f"initrate.bench.{entry.module}"), entry.function)


def lacking(engine: str) -> str | None:
    """Return why this engine cannot run here, or None.

    >>> lacking("eager") is None
    True
    """
    for package in _ENTRIES[engine].needs:
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed: pip install {package}"
    if engine == "compiled" and not _has_compiler():
        return "no C++ compiler is found, which torch.compile needs: install g++, or set CXX"
    return None


def _has_compiler() -> bool:
    """Return whether there is what torch.compile calls: CXX, or the compiler of the system."""
    own = shlex.split(os.environ.get("CXX", ""))
    return any(shutil.which(name) for name in (own[:1] or ["g++", "clang++", "c++"]))

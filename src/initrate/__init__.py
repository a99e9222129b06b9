"""initrate: the initialization rate gamma (std = d_in ** -gamma) and what it decides.

Importing this package imports nothing else: a name is loaded when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initrate import lab
    from initrate.errors import InputError
    from initrate.rule import (
        Gamma,
        Keep,
        Rule,
        Std,
        Uniform,
        Zero,
        gamma_from_std,
        named_rule,
        std_from_gamma,
    )

__version__ = "0.1.0"

__all__ = [
    "Gamma",
    "InputError",
    "Keep",
    "Rule",
    "Std",
    "Uniform",
    "Zero",
    "__version__",
    "gamma_from_std",
    "lab",
    "named_rule",
    "std_from_gamma",
]

_HOME = {
    "InputError": "initrate.errors",
    "Gamma": "initrate.rule",
    "Keep": "initrate.rule",
    "Rule": "initrate.rule",
    "Std": "initrate.rule",
    "Uniform": "initrate.rule",
    "Zero": "initrate.rule",
    "gamma_from_std": "initrate.rule",
    "named_rule": "initrate.rule",
    "std_from_gamma": "initrate.rule",
}


def __getattr__(name: str) -> object:
    if name == "lab":
        return importlib.import_module("initrate.lab")
    if name not in _HOME:
        raise AttributeError(f"module 'initrate' has no attribute {name!r}")
    found = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = found  # The next look-up finds the name without coming here.
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

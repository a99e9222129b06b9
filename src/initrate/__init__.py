"""initrate: the initialization rate gamma (std = d_in ** -gamma) and what it decides.

Importing this package imports nothing else: a name is loaded when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initrate import huggingface, jax, keras, lab, testing
    from initrate.errors import FindingError, InputError
    from initrate.frameworks._dispatch import (
        apply,
        assert_init,
        audit,
        param_groups,
        plan,
        preflight,
    )
    from initrate.frameworks._layout import Layout
    from initrate.rule import (
        Audit,
        Finding,
        Gamma,
        Keep,
        Plan,
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
    "Audit",
    "Finding",
    "FindingError",
    "Gamma",
    "InputError",
    "Keep",
    "Layout",
    "Plan",
    "Rule",
    "Std",
    "Uniform",
    "Zero",
    "__version__",
    "apply",
    "assert_init",
    "audit",
    "gamma_from_std",
    "huggingface",
    "jax",
    "keras",
    "lab",
    "named_rule",
    "param_groups",
    "plan",
    "preflight",
    "std_from_gamma",
    "testing",
]

_DISPATCH = "initrate.frameworks._dispatch"
_HOME = {
    "FindingError": "initrate.errors",
    "InputError": "initrate.errors",
    "Layout": "initrate.frameworks._layout",
    "Audit": "initrate.rule",
    "Finding": "initrate.rule",
    "Gamma": "initrate.rule",
    "Keep": "initrate.rule",
    "Plan": "initrate.rule",
    "Rule": "initrate.rule",
    "Std": "initrate.rule",
    "Uniform": "initrate.rule",
    "Zero": "initrate.rule",
    "gamma_from_std": "initrate.rule",
    "named_rule": "initrate.rule",
    "std_from_gamma": "initrate.rule",
    "apply": _DISPATCH,
    "assert_init": _DISPATCH,
    "audit": _DISPATCH,
    "param_groups": _DISPATCH,
    "plan": _DISPATCH,
    "preflight": _DISPATCH,
}
_NAMESPACES = {
    "huggingface": "initrate.huggingface",
    "jax": "initrate.jax",
    "keras": "initrate.keras",
    "lab": "initrate.lab",
    "testing": "initrate.testing",
}
"""Modules that need an extra of their own."""


def __getattr__(name: str) -> object:
    if name in _NAMESPACES:
        return importlib.import_module(_NAMESPACES[name])
    if name not in _HOME:
        raise AttributeError(f"module 'initrate' has no attribute {name!r}")
    found = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = found  # The next look-up finds the name without coming here.
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""What a framework has to offer to be put through the suite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from initrate.rule import Audit, Plan, Rule


class ConformanceError(AssertionError):
    """What an adapter does otherwise than it should, told in one line."""


class Adapter(Protocol):
    """A framework: how to build the model of a case, and how to plan, apply and read it."""

    absent: Mapping[str, str]
    """The cases that the framework has nothing for, and why: `{"meta": "there are no ..."}`."""

    def build(self, case: str) -> Any:
        """Return the model that `describe(case)` asks for, or None where `absent` says why."""
        ...

    def plan(self, model: Any, rule: Rule) -> Plan:
        """Return the plan of the model."""
        ...

    def apply(self, model: Any, rule: Rule, seed: int) -> tuple[Any, Audit]:
        """Return the model with its values, the same or another, and the audit."""
        ...

    def values(self, model: Any) -> dict[str, NDArray[np.floating]]:
        """Return a copy of every tensor that the plan names, aliases included, by its name.

        Of a tensor that is spread over devices the whole, of a weight that is computed from
        others the outcome, of a type that NumPy has not the same numbers in float32.
        """
        ...

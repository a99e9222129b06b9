"""Keras 3, on any of its backends: the plan of a model, its application and its audit."""

from initrate.frameworks._layout import Layout
from initrate.frameworks.keras._apply import apply, audit
from initrate.frameworks.keras._decay import exclude_from_decay
from initrate.frameworks.keras._plan import plan

__all__ = ["Layout", "apply", "audit", "exclude_from_decay", "plan"]

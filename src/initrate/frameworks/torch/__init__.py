"""torch: the plan of a model, its application and its audit."""

from initrate.frameworks.torch._apply import apply
from initrate.frameworks.torch._layout import Layout
from initrate.frameworks.torch._plan import plan

__all__ = ["Layout", "apply", "plan"]

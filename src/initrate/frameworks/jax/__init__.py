"""JAX: the plan of any tree of arrays, Flax NNX, Linen and Equinox, and its application."""

from initrate.frameworks._layout import Layout
from initrate.frameworks.jax._apply import apply, audit
from initrate.frameworks.jax._decay import decay_mask
from initrate.frameworks.jax._plan import plan

__all__ = ["Layout", "apply", "audit", "decay_mask", "plan"]

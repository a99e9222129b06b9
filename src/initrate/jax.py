"""γ for models of JAX: the names of `initrate.frameworks.jax`."""

from initrate.frameworks.jax import (
    Layout,
    apply,
    audit,
    decay_mask,
    plan,
)

__all__ = ["Layout", "apply", "audit", "decay_mask", "plan"]

"""γ for models of Keras: the names of `initrate.frameworks.keras`."""

from initrate.frameworks.keras import (
    Layout,
    apply,
    audit,
    exclude_from_decay,
    plan,
)

__all__ = ["Layout", "apply", "audit", "exclude_from_decay", "plan"]

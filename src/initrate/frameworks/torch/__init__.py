"""torch: the plan of a model, its application and its audit."""

from initrate.frameworks._layout import Layout
from initrate.frameworks.torch._apply import apply
from initrate.frameworks.torch._audit import audit
from initrate.frameworks.torch._decay import DecayHandle, independent_decay, scheduled_decay
from initrate.frameworks.torch._groups import ParamGroups, optimizer_findings, param_groups
from initrate.frameworks.torch._plan import plan
from initrate.frameworks.torch._preflight import Preflight, preflight
from initrate.frameworks.torch._trace import trace
from initrate.frameworks.torch._trace_use import Trace, Use

__all__ = [
    "DecayHandle",
    "Layout",
    "ParamGroups",
    "Preflight",
    "Trace",
    "Use",
    "apply",
    "audit",
    "independent_decay",
    "optimizer_findings",
    "param_groups",
    "plan",
    "preflight",
    "scheduled_decay",
    "trace",
]

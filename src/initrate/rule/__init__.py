"""Rules of initialization: from gamma to the values of every tensor. NumPy alone."""

from initrate.rule._audit import Audit, AuditRow, make_audit
from initrate.rule._decay import (
    DECAYED,
    LARGEST_DECAY,
    MOST_STEPS,
    NOT_DECAYED,
    Decay,
    DecayedTensor,
    DecayPairs,
    DecayPolicy,
    DecaySchedule,
    check_decay_pairs,
    decay_factor,
    decay_number,
    decay_window,
    refuse_troubles,
    role_decays,
)
from initrate.rule._draws import (
    Draw,
    Gamma,
    Keep,
    Std,
    Uniform,
    Zero,
    as_draw,
    draw_to_dict,
)
from initrate.rule._finding import CODES, Finding
from initrate.rule._frozen import FrozenMapping
from initrate.rule._gamma import gamma_from_std, std_from_gamma
from initrate.rule._memory import kept_memory
from initrate.rule._named import RULES, NamedRule, named_rule, rule_title
from initrate.rule._plan import Plan, PlanRow, Unknown, plan_records
from initrate.rule._random import BLOCK, unit_normal, unit_uniform
from initrate.rule._record import DENSE_ROLES, WeightRecord
from initrate.rule._roles import (
    EMBEDDING_ROLES,
    KEPT_ROLES,
    RESIDUAL_ROLES,
    ROLE_GROUPS,
    ROLES,
    WEIGHT_ROLES,
    group_of,
)
from initrate.rule._rule import Rule
from initrate.rule._slice import Slice
from initrate.rule._tensor import TensorSpec, draw_tensor, tensor_d_in, tensor_std
from initrate.rule._window import draw_window, windows

__all__ = [
    "BLOCK",
    "CODES",
    "DECAYED",
    "DENSE_ROLES",
    "EMBEDDING_ROLES",
    "KEPT_ROLES",
    "LARGEST_DECAY",
    "MOST_STEPS",
    "NOT_DECAYED",
    "RESIDUAL_ROLES",
    "ROLES",
    "ROLE_GROUPS",
    "RULES",
    "WEIGHT_ROLES",
    "Audit",
    "AuditRow",
    "Decay",
    "DecayPairs",
    "DecayPolicy",
    "DecaySchedule",
    "DecayedTensor",
    "Draw",
    "Finding",
    "FrozenMapping",
    "Gamma",
    "Keep",
    "NamedRule",
    "Plan",
    "PlanRow",
    "Rule",
    "Slice",
    "Std",
    "TensorSpec",
    "Uniform",
    "Unknown",
    "WeightRecord",
    "Zero",
    "as_draw",
    "check_decay_pairs",
    "decay_factor",
    "decay_number",
    "decay_window",
    "draw_tensor",
    "draw_to_dict",
    "draw_window",
    "gamma_from_std",
    "group_of",
    "kept_memory",
    "make_audit",
    "named_rule",
    "plan_records",
    "refuse_troubles",
    "role_decays",
    "rule_title",
    "std_from_gamma",
    "tensor_d_in",
    "tensor_std",
    "unit_normal",
    "unit_uniform",
    "windows",
]

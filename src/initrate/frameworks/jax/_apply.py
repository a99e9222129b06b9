"""Apply and audit: the values of a rule into a tree, all of them or none, and what they measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args

import jax
import numpy as np

from initrate.errors import unknown as unknown_word
from initrate.frameworks._arrays import check_force, measure, new_values, refuse_trained
from initrate.frameworks._layout import Layout
from initrate.frameworks.jax._leaf import check_values, like
from initrate.frameworks.jax._nnx import is_nnx_module
from initrate.frameworks.jax._plan import (
    Patterns,
    TreeTensor,
    tensors_of,
    with_rows,
)
from initrate.measure import Moments
from initrate.rule import Audit, PlanRow, Rule, Unknown, make_audit, plan_records
from initrate.rule._choice import chosen_rule, needed_rule

Mode = Literal["draw", "rescale"]
Tree = TypeVar("Tree")


def apply(
    tree: Tree,
    *,
    gamma: float | None = None,
    rule: Rule | str | None = None,
    gamma_by_role: Mapping[str, float] | None = None,
    seed: int = 0,
    mode: Mode = "draw",
    unknown: Unknown = "refuse",
    layouts: Sequence[Layout] = (),
    module: Any = None,
    example: Any = None,
    include: Patterns = (),
    exclude: Patterns = (),
    force: bool = False,
    waive: Sequence[str] = (),
) -> tuple[Tree, Audit]:
    """Draw the parameters of a tree by a rule; return the new tree and what was then measured.

    A module of Flax NNX is changed in place and returned; any other tree is left as it is, and
    the new one has its structure, types and shardings. Every value depends on (seed, name, place)
    alone, and the same rule and seed again change nothing. With `mode="rescale"` the values that
    are there are multiplied to the std of the rule. A model that looks trained, with a norm whose
    gain is not constant, is refused unless `force` is given. With an InputError nothing is drawn.

    >>> from initrate.frameworks.jax import Layout
    >>> layouts = [Layout("fc", kernel=("in", "out"))]
    >>> tree = {"fc": {"kernel": np.zeros((64, 256), np.float32)}}
    >>> new, found = apply(tree, gamma=0.5, seed=0, layouts=layouts)
    >>> round(float(new["fc"]["kernel"].std()), 3), found.ok
    (0.125, True)
    """
    if mode not in get_args(Mode):
        raise unknown_word("mode", mode, get_args(Mode))
    check_force(force)
    chosen = needed_rule(gamma, rule, gamma_by_role)
    tensors = tensors_of(
        tree,
        layouts=layouts,
        module=module,
        example=example,
        include=include,
        exclude=exclude,
    )
    records = [record for tensor in tensors for record in tensor.records]
    plan = plan_records(records, chosen, unknown_tensors=unknown)
    plan.raise_for_refused()
    pairs = with_rows(plan, tensors)
    for tensor in tensors:
        check_values(tensor.name, tensor.array)
        if not force and tensor.records[0].roles == ("norm",):
            refuse_trained(tensor.name, np.asarray(tensor.array))
    arrays = [_drawn(tensor, rows, seed, mode) for tensor, rows in pairs]
    found = make_audit(plan, _measured(tensors, arrays), rule=chosen, waive=waive)
    return _written(tree, tensors, arrays), found


def audit(
    tree: Any,
    *,
    gamma: float | None = None,
    rule: Rule | str | None = None,
    gamma_by_role: Mapping[str, float] | None = None,
    unknown: Unknown = "refuse",
    layouts: Sequence[Layout] = (),
    module: Any = None,
    example: Any = None,
    include: Patterns = (),
    exclude: Patterns = (),
    waive: Sequence[str] = (),
) -> Audit:
    """Return the measured std and the implied rate of every parameter, and what is wrong.

    Without gamma and rule nothing is expected of the weights, and what needs no rule is still
    found. The tree is not changed.

    >>> from initrate.frameworks.jax import Layout
    >>> tree = {"fc": {"kernel": np.full((64, 256), 0.5, np.float32)}}
    >>> found = audit(tree, gamma=0.5, layouts=[Layout("fc", kernel=("in", "out"))])
    >>> [finding.code for finding in found.findings]
    ['IR101']
    """
    chosen = chosen_rule(gamma, rule, gamma_by_role)
    tensors = tensors_of(
        tree,
        layouts=layouts,
        module=module,
        example=example,
        include=include,
        exclude=exclude,
    )
    for tensor in tensors:
        check_values(tensor.name, tensor.array)
    records = [record for tensor in tensors for record in tensor.records]
    plan = plan_records(records, chosen or Rule(), unknown_tensors=unknown)
    measured = _measured(tensors, [tensor.array for tensor in tensors])
    return make_audit(plan, measured, rule=chosen, waive=waive)


def _drawn(tensor: TreeTensor, rows: Sequence[PlanRow], seed: int, mode: Mode) -> Any:
    """Return the new array of a tensor, or the old one where nothing changes."""
    if all(row.action not in ("draw", "zero") for row in rows):
        return tensor.array
    old = np.asarray(tensor.array)
    new = new_values(old, rows, seed, rescale=mode == "rescale")
    # The same rule and seed again is the same array again.
    return tensor.array if np.array_equal(old, new) else like(tensor.array, new)


def _measured(tensors: Sequence[TreeTensor], arrays: Sequence[Any]) -> dict[str, Moments]:
    found: dict[str, Moments] = {}
    for tensor, array in zip(tensors, arrays, strict=True):
        # Complex numbers and other types that are refused have no moments.
        if not tensor.records[0].refuse.startswith("holds "):
            found |= measure(np.asarray(array), tensor.records)
    return found


def _written(tree: Tree, tensors: Sequence[TreeTensor], arrays: Sequence[Any]) -> Tree:
    """Return the tree with the arrays at all places of their tensors."""
    if is_nnx_module(tree):
        for tensor, array in zip(tensors, arrays, strict=True):
            for variable in tensor.targets if array is not tensor.array else ():
                variable.set_value(array)
        return tree
    leaves, structure = jax.tree_util.tree_flatten(tree)
    for tensor, array in zip(tensors, arrays, strict=True):
        for index in tensor.targets:
            leaves[index] = array
    return jax.tree_util.tree_unflatten(structure, leaves)

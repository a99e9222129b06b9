"""The plan of a tree of arrays, or of a module of Flax NNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from initrate.errors import InputError
from initrate.frameworks._layout import Axes, Layout
from initrate.frameworks._parameter import (
    check_layouts,
    gather,
    is_table,
    refuse_layouts_without_effect,
)
from initrate.frameworks._reading import reading
from initrate.frameworks.jax._describe import describe, eps_of
from initrate.frameworks.jax._leaf import Leaf, once
from initrate.frameworks.jax._linen import learn
from initrate.frameworks.jax._nnx import is_nnx_module, nnx_leaves
from initrate.frameworks.jax._tree import tree_leaves
from initrate.rule import Plan, PlanRow, Rule, Unknown, WeightRecord, plan_records
from initrate.rule._choice import needed_rule

Patterns = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class TreeTensor:
    """One tensor of a tree: what it is, part by part, and all places that its values go to."""

    records: tuple[WeightRecord, ...]
    array: Any
    targets: tuple[Any, ...]

    @property
    def name(self) -> str:
        """The canonical name."""
        return self.records[0].name


def tensors_of(
    tree: Any,
    *,
    layouts: Sequence[Layout] = (),
    module: Any = None,
    example: Any = None,
    include: Patterns = (),
    exclude: Patterns = (),
) -> list[TreeTensor]:
    """Return the parameters of a tree, tied ones once."""
    check_layouts(layouts)
    with reading(tree):
        return _tensors_of(tree, layouts, module, example, include, exclude)


def _tensors_of(
    tree: Any,
    layouts: Sequence[Layout],
    module: Any,
    example: Any,
    include: Patterns,
    exclude: Patterns,
) -> list[TreeTensor]:
    if is_nnx_module(tree):
        if module is not None:
            raise InputError("module is given beside an nnx.Module, which says itself what it is")
        leaves = nnx_leaves(tree)
    else:
        if module is None and example is not None:
            raise InputError("example is given without module: give the flax.linen module too")
        leaves = tree_leaves(tree, None if module is None else learn(module, example))
    refuse_layouts_without_effect(layouts, [leaf.parameter for leaf in leaves])
    chosen: list[tuple[Leaf, Axes]] = []
    aliases: list[tuple[str, ...]] = []
    groups = once(leaves)
    for group in groups:
        described = [(leaf, describe(leaf.parameter, layouts, leaf.inner)) for leaf in group]
        # A tied storage goes by the name under which it is a table.
        first, axes = next((pair for pair in described if is_table(pair[1])), described[0])
        chosen.append((first, axes))
        names = (leaf.parameter.name for leaf, _ in described if leaf is not first)
        aliases.append(tuple(names))
    records = gather(
        [(leaf.parameter, axes, eps_of(leaf.parameter.owners[-1])) for leaf, axes in chosen],
        aliases,
        include,
        exclude,
    )
    return [
        TreeTensor(rows, group[0].array, tuple(leaf.target for leaf in group))
        for rows, group in zip(records, groups, strict=True)
    ]


def with_rows(plan: Plan, tensors: Sequence[TreeTensor]) -> list[tuple[TreeTensor, list[PlanRow]]]:
    """Return the tensors, each with its rows of the plan."""
    rows = iter(plan.rows)
    return [(tensor, [next(rows) for _ in tensor.records]) for tensor in tensors]


def plan(
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
) -> Plan:
    """Return what a rule does with every parameter of a tree; the tree is not changed.

    `tree` is a module of Flax NNX or Equinox, or any tree of arrays or of shapes. Roles and axes
    come from the modules that own the parameters, never from a shape. The params of Flax Linen
    and other plain trees have no modules: give the Linen `module` with an `example` of what it is
    called with, or layouts by path, such as `Layout("*/Dense_*", kernel=("in", "out"))`. What is
    not known for certain is refused by name, or kept with `unknown="keep"`.

    >>> import numpy as np
    >>> from initrate.frameworks.jax import Layout
    >>> tree = {"fc": {"kernel": np.zeros((64, 256), np.float32)}}
    >>> plan(tree, gamma=0.5).rows[0].reason
    'is a leaf of a plain tree, whose layout is not known'
    >>> found = plan(tree, gamma=0.5, layouts=[Layout("fc", kernel=("in", "out"))])
    >>> found.rows[0].d_in, found.rows[0].std
    (64, 0.125)
    """
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
    return plan_records(records, chosen, unknown_tensors=unknown)

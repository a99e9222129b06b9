"""Which leaves decay: a mask for optax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax

from initrate.errors import InputError
from initrate.frameworks._layout import Layout
from initrate.frameworks.jax._nnx import is_nnx_module
from initrate.frameworks.jax._plan import tensors_of
from initrate.rule import Decay, DecayPolicy, refuse_troubles


def decay_mask(
    tree: Any,
    *,
    decay: DecayPolicy = "matrices",
    by_role: Mapping[str, bool] | None = None,
    layouts: Sequence[Layout] = (),
    module: Any = None,
    example: Any = None,
) -> Any:
    """Return a tree of truth values, as `mask` of optax takes it: which leaves decay.

    Of a module of Flax NNX it has a value for each variable of `nnx.state(module, nnx.Param)`,
    which is what an `nnx.Optimizer` with `wrt=nnx.Param` gives to optax; else it has the
    structure of the tree. `decay` says
    what decays: "matrices" is every weight that a rule may draw, embeddings and positions too,
    but no bias, norm or structured tensor; "not_embeddings" leaves out embeddings, positions and
    the unembedding as well; "all" leaves out nothing. `by_role` says it for a role or a group by
    itself. The biases of heads, and those of stacked layers, have two axes and still do not decay.
    Leaves whose role is not known follow their being a matrix or not.

    >>> import numpy as np
    >>> from initrate.frameworks.jax import Layout
    >>> tree = {"fc": {"kernel": np.zeros((4, 2)), "bias": np.zeros((3, 2))}}
    >>> decay_mask(tree, layouts=[Layout("fc", kernel=("in", "out"), bias="bias")])
    {'fc': {'bias': False, 'kernel': True}}
    """
    for key, found in (by_role or {}).items():
        if not isinstance(found, bool):
            raise InputError(f"by_role gives {key!r} {found!r}: expected True or False")
    rule = Decay(1.0, decay, {key: float(found) for key, found in (by_role or {}).items()})
    tensors = tensors_of(tree, layouts=layouts, module=module, example=example)
    decayed = [rule.of_tensor(tensor.records) for tensor in tensors]
    refuse_troubles(decayed)
    answers: dict[object, bool] = {
        id(target) if is_nnx_module(tree) else target: found.weight_decay > 0
        for tensor, found in zip(tensors, decayed, strict=True)
        for target in tensor.targets
    }
    if is_nnx_module(tree):
        return _of_module(tree, answers)
    leaves, structure = jax.tree_util.tree_flatten(tree)
    mask = [answers.get(index, False) for index in range(len(leaves))]
    return jax.tree_util.tree_unflatten(structure, mask)


def _of_module(module: Any, answers: Mapping[object, bool]) -> Any:
    """Return the mask in the structure of the state of a module's parameters."""
    from flax import nnx

    # One truth value for each variable: it fits a state with its variables, and one of arrays.
    return nnx.from_flat_state(
        [
            (path, answers.get(id(variable), False))
            for path, variable in nnx.iter_graph(module)
            if isinstance(variable, nnx.Param)
        ]
    )

"""Which weights an optimizer of Keras decays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from initrate.errors import InputError
from initrate.frameworks._layout import Layout
from initrate.frameworks.keras._plan import tensors_of
from initrate.rule import Decay, DecayPolicy, refuse_troubles


def exclude_from_decay(
    model: Any,
    optimizer: Any = None,
    *,
    decay: DecayPolicy = "matrices",
    by_role: Mapping[str, bool] | None = None,
    layouts: Sequence[Layout] = (),
) -> tuple[str, ...]:
    """Tell an optimizer of Keras what it is not to decay; return the names of that.

    The optimizer is that of the compiled model unless one is given. It must not be built, as it
    is after its first step, or after `fit`: Keras takes exclusions before that only. `decay` says
    what decays: "matrices" is every weight that a rule may draw, embeddings too, but no bias,
    norm or structured tensor; "not_embeddings" leaves out embeddings, positions and the
    unembedding as well; "all" leaves out nothing. `by_role` says it for a role or a group by
    itself. Weights whose role is not known follow their being a matrix or not.

    >>> import keras
    >>> model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256)])
    >>> optimizer = keras.optimizers.AdamW(3e-4, weight_decay=0.1)
    >>> exclude_from_decay(model, optimizer)
    ('dense.bias',)
    """
    for key, found in (by_role or {}).items():
        if not isinstance(found, bool):
            raise InputError(f"by_role gives {key!r} {found!r}: expected True or False")
    optimizer = getattr(model, "optimizer", None) if optimizer is None else optimizer
    # An optimizer that scales the loss hands its exclusions to nobody.
    while hasattr(optimizer, "inner_optimizer"):
        optimizer = optimizer.inner_optimizer
    if not hasattr(optimizer, "exclude_from_weight_decay"):
        raise InputError(
            f"optimizer is {type(optimizer).__name__}: give one of Keras, or compile the model"
        )
    if optimizer.built:
        raise InputError(
            f"optimizer {optimizer.name!r} is built: exclude_from_decay comes before its first step"
        )
    if not optimizer.weight_decay:
        raise InputError(f"optimizer {optimizer.name!r} has no weight_decay: give it one")
    rule = Decay(1.0, decay, {key: float(found) for key, found in (by_role or {}).items()})
    tensors = tensors_of(model, layouts=layouts)
    decayed = [rule.of_tensor(tensor.records) for tensor in tensors]
    refuse_troubles(decayed)
    left_out = [
        tensor for tensor, found in zip(tensors, decayed, strict=True) if not found.weight_decay
    ]
    optimizer.exclude_from_weight_decay(var_list=[tensor.variable for tensor in left_out])
    return tuple(tensor.name for tensor in left_out)

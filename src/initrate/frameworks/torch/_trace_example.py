"""The example: a batch, or the shapes of one, as the arguments of a model's forward."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map

from initrate.errors import InputError

_WHOLE = re.compile(
    r"(^|_)(ids?|idx|tokens?|labels?|masks?|ind(ex|ices)|positions?|targets?|bbox)$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Example:
    """The arguments of a forward."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    real: bool
    """Whether all of its tensors hold values."""

    def changed(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Example:
        """Return the example with every tensor changed."""

        def leaf(found: object) -> object:
            return change(found) if isinstance(found, torch.Tensor) else found

        args, kwargs = tree_map(leaf, (self.args, dict(self.kwargs)))
        return Example(args, kwargs, self.real)


def read_example(model: nn.Module, example: object) -> Example:
    """Return the arguments that an example means.

    A tensor is the first argument, a tuple or list all of them in order, a mapping those by name.
    A tuple of whole numbers stands for a tensor of that shape on the meta device: of whole numbers
    where the name of the argument says so (`input_ids`, `labels`, a mask), else of the model's
    floats.

    >>> example = read_example(nn.Linear(4, 4), (2, 4))
    >>> example.args[0].shape, example.args[0].device.type, example.real
    (torch.Size([2, 4]), 'meta', False)
    """
    floats = (p.dtype for p in model.parameters() if p.is_floating_point())
    dtype = next(floats, torch.float32)
    if isinstance(example, Mapping):
        named = cast("Mapping[Any, Any]", example)
        for name in named:
            if not isinstance(name, str):
                raise InputError(f"example has the key {name!r}: expected names of arguments")
        kwargs = {name: _argument(name, found, dtype) for name, found in named.items()}
        return _checked((), kwargs)
    if isinstance(example, torch.Tensor) or _is_shape(example):
        arguments: Sequence[Any] = (example,)
    elif isinstance(example, tuple | list):
        arguments = cast("Sequence[Any]", example)
    else:
        raise InputError(
            f"example is {type(example).__name__}: expected a tensor, a tuple or dict of tensors, "
            "or shapes such as {'input_ids': (2, 16)}"
        )
    names = [*inspect.signature(model.forward).parameters, *[""] * len(arguments)]
    return _checked(
        tuple(_argument(name, x, dtype) for name, x in zip(names, arguments, strict=False)), {}
    )


def _checked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Example:
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    if not tensors:
        raise InputError("example holds no tensor and no shape: expected a batch, or its shapes")
    return Example(args, kwargs, all(not x.is_meta for x in tensors))


def _is_shape(found: object) -> bool:
    if not isinstance(found, tuple | list) or not found:
        return False
    return all(isinstance(side, int) and not isinstance(side, bool) for side in found)


def _argument(name: str, found: Any, dtype: torch.dtype) -> Any:
    if not _is_shape(found):
        return found
    if min(found) < 1:
        raise InputError(f"example has the shape {tuple(found)}: expected sides of at least 1")
    whole = _WHOLE.search(name) is not None
    return torch.empty(tuple(found), dtype=torch.int64 if whole else dtype, device="meta")

"""Values on the meta device: those of small tensors that no parameter has a part in.

Masks, places and sizes decide which way a forward goes. They follow from the batch and from
constants, so an operation on them is run a second time with values, and what asks for one of
these gets it. What follows from a parameter has no values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from initrate.frameworks.torch._trace_operations import FORMS, name_of
from initrate.frameworks.torch._trace_storages import tensors_in

LARGEST = 65536
"""The largest tensor, in places, whose values are kept."""


class Values:
    """The values of tensors on the meta device, by their storages; a view needs no more."""

    def __init__(self, known: Iterable[tuple[torch.Tensor, torch.Tensor]] = ()) -> None:
        self._known: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        for tensor, real in known:
            self._learn(tensor, real)

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return the values of a tensor, or None where they are not known."""
        if not tensor.is_meta:
            return tensor
        found = self._known.get(tensor.untyped_storage()._cdata)
        if found is None or found[1].dtype != tensor.dtype:
            return None
        return found[1].as_strided(tensor.shape, tensor.stride(), int(tensor.storage_offset()))

    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return what an operation gives on the meta device, and learn its values."""
        real = self._real(func, args, kwargs)
        if real is None:
            self._forget(func, args)
            return func(*_places(self, name_of(func), args), **kwargs)
        try:
            out = func(*args, **kwargs)
        except (NotImplementedError, RuntimeError):
            # What the result looks like depends on values, and they are known.
            found = func(*real[0], **real[1])
            read = kwargs.get("device") == torch.device("cpu")  # A list of its values, say.
            return found if read else tree_map(self._lift, found)
        tensors = tensors_in(out)
        fresh = any(self.of(tensor) is None for tensor in tensors)
        small = all(tensor.numel() <= LARGEST for tensor in tensors)
        if (fresh and small) or func._schema.is_mutable:
            values = tree_leaves(func(*real[0], **real[1]))
            for tensor, found in zip(tree_leaves(out), values, strict=True):
                if isinstance(tensor, torch.Tensor) and self.of(tensor) is None:
                    self._learn(tensor, found)
        return out

    def _real(
        self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Return the arguments with values, or None where some have none."""
        name = name_of(func)
        if "empty" in name or torch.Tag.nondeterministic_seeded in func.tags:
            return None
        if name not in FORMS and any(self.of(x) is None for x in tensors_in((args, kwargs))):
            return None
        missing = False

        def value(leaf: object) -> object:
            nonlocal missing
            if isinstance(leaf, torch.Tensor):
                found = self.of(leaf)
                if found is None and name in FORMS and leaf.numel() <= LARGEST:
                    return torch.empty(leaf.shape, dtype=leaf.dtype, device="cpu")
                missing = missing or found is None
                return found
            return torch.device("cpu") if isinstance(leaf, torch.device) else leaf

        real = tree_map(value, (args, dict(kwargs)))
        return None if missing else real

    def _lift(self, found: object) -> object:
        if not isinstance(found, torch.Tensor) or found.is_meta:
            return found
        tensor = torch.empty_like(found, device="meta")
        self._learn(tensor, found)
        return tensor

    def _learn(self, tensor: torch.Tensor, real: torch.Tensor) -> None:
        size = tensor.untyped_storage().nbytes() // max(1, tensor.element_size())
        if not tensor.is_meta or size > LARGEST:
            return
        flat = torch.zeros(size, dtype=tensor.dtype, device="cpu")
        laid = flat.as_strided(tensor.shape, tensor.stride(), int(tensor.storage_offset()))
        laid.copy_(real)
        self._known[tensor.untyped_storage()._cdata] = (tensor, flat)

    def _forget(self, func: Any, args: tuple[Any, ...]) -> None:
        """Forget what an operation writes to, whose values are not known."""
        if func._schema.is_mutable and args and isinstance(args[0], torch.Tensor):
            self._known.pop(args[0].untyped_storage()._cdata, None)


def _places(values: Values, name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of an index with the places that a known mask picks."""
    if name != "index":
        return args
    indices: list[torch.Tensor | None] = []
    for index in args[1]:
        real = None if index is None or index.dtype != torch.bool else values.of(index)
        if real is None:
            indices.append(index)
        else:
            rows = real.nonzero(as_tuple=True)
            indices.extend(torch.empty_like(row, device="meta") for row in rows)
    return (args[0], indices, *args[2:])

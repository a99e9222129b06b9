"""What the recorder knows of tensors: which come from parameters, and which from constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch

from initrate.frameworks.torch._trace_axes import Digits, Origin, digits_of, of_parameter


@dataclass(frozen=True, slots=True)
class Seen:
    """A tensor as a view of values of one parameter; no digits where that is not understood."""

    origin: Origin
    digits: Digits | None

    @property
    def parameter(self) -> int:
        return self.origin.parameter


def key_of(tensor: torch.Tensor) -> int:
    """Return what all views of one storage have in common."""
    return tensor.untyped_storage()._cdata


def tensors_in(found: object) -> list[torch.Tensor]:
    """Return all tensors in nested lists, tuples and dicts."""
    if isinstance(found, torch.Tensor):
        return [found]
    inner: Iterable[object] = ()
    if isinstance(found, tuple | list):
        inner = cast("Iterable[object]", found)
    elif isinstance(found, Mapping):
        inner = cast("Mapping[str, object]", found).values()
    return [tensor for part in inner for tensor in tensors_in(part)]


class Storages:
    """The storages of one forward.

    A tensor is one of three: it comes from parameters, it comes from constants alone, or it comes
    from the example, and nothing is kept of it. Whatever is kept is held, so that no other
    storage gets its key.
    """

    def __init__(
        self, parameters: Sequence[Sequence[torch.Tensor]], constants: Iterable[torch.Tensor]
    ) -> None:
        self._held: list[torch.Tensor] = []
        self._origins: dict[int, tuple[Origin, ...]] = {}
        self._constants: set[int] = set()
        for index, copies in enumerate(parameters):
            for tensor in copies:
                fines = of_parameter(tensor.shape, tensor.stride())
                self.keep(tensor, (Origin(index, fines),))
        self._own = frozenset(self._origins)
        for tensor in constants:
            self.keep_constant(tensor)

    def hold(self, tensor: torch.Tensor) -> int:
        """Hold a tensor, and return the key of its storage."""
        self._held.append(tensor)
        return key_of(tensor)

    def keep_constant(self, tensor: torch.Tensor) -> None:
        """Keep that a tensor comes from constants alone."""
        self._constants.add(self.hold(tensor))

    def keep(self, tensor: torch.Tensor, origins: tuple[Origin, ...]) -> None:
        """Keep which parameters the values of a new tensor come from."""
        self._origins[self.hold(tensor)] = origins

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget a tensor that values of the example were written to."""
        self._origins.pop(key_of(tensor), None)
        self._constants.discard(key_of(tensor))

    def is_parameter(self, tensor: torch.Tensor) -> bool:
        """Return whether the storage is that of a parameter itself."""
        return key_of(tensor) in self._own

    def of_parameters(self, tensor: torch.Tensor) -> bool:
        """Return whether the storage has values of parameters."""
        return key_of(tensor) in self._origins

    def of_example(self, tensor: torch.Tensor) -> bool:
        """Return whether the values come from the example."""
        key = key_of(tensor)
        return key not in self._origins and key not in self._constants

    def seen(self, tensor: object) -> list[Seen]:
        """Return what a tensor is of each parameter that it has values of."""
        if not isinstance(tensor, torch.Tensor):
            return []
        found = []
        for origin in self._origins.get(key_of(tensor), ()):
            try:
                digits = digits_of(
                    origin.fines, tensor.shape, tensor.stride(), int(tensor.storage_offset())
                )
            except ValueError:
                found.append(Seen(origin, None))
                continue
            if digits is not None:
                found.append(Seen(origin, digits))
        return found

"""Weights that are computed from other parameters: weight norm, and what pins a weight's size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.utils import parametrize

from initrate.errors import InputError

_PINNED = {
    "_SpectralNorm": "is spectrally normalized: its size is pinned, and no draw changes it",
    "_Orthogonal": "is kept orthogonal: its size is pinned, and no draw changes it",
    "SpectralNorm": "is spectrally normalized: its size is pinned, and no draw changes it",
    "PruningContainer": "is pruned: its mask would hide part of the draw",
}


@dataclass(frozen=True, slots=True)
class Reparametrized:
    """How to read and set a weight that a module computes from other parameters."""

    hidden: tuple[str, ...]
    """The module's own parameters behind it."""
    value: Callable[[], torch.Tensor]
    assign: Callable[[torch.Tensor], None]
    behind: Callable[[], list[torch.Tensor]]
    """The parameters that it is computed from."""
    state: Callable[[], list[torch.Tensor]]
    """All that an assignment may change, so that it can be taken back."""
    refuse: str = ""
    refresh: Callable[[], None] = lambda: None
    """Compute it anew, where its module holds what was computed."""


def reparametrized(module: nn.Module) -> dict[str, Reparametrized]:
    """Return the weights of a module that are computed, by their names."""
    found: dict[str, Reparametrized] = {}
    if parametrize.is_parametrized(module):
        for name, chain in module.parametrizations.items():  # pyright: ignore[reportAttributeAccessIssue, reportCallIssue]
            found[name] = _through_parametrizations(module, name, chain)
    for hook in module._forward_pre_hooks.values():
        kind, name = type(hook).__name__, getattr(hook, "name", None)
        if kind == "WeightNorm" and isinstance(name, str):
            found[name] = _through_old_weight_norm(module, name, hook)
        elif (kind in _PINNED or hasattr(hook, "apply_mask")) and isinstance(
            tensor := name or getattr(hook, "_tensor_name", None), str
        ):
            found[tensor] = _pinned(module, tensor, _PINNED.get(kind, _PINNED["PruningContainer"]))
    return found


def own_tensor(module: nn.Module, name: str) -> torch.Tensor | None:
    """Return a parameter of a module, or a weight that it computes, without any trace of it."""
    found = module._parameters.get(name)
    if found is None and (through := reparametrized(module).get(name)) is not None:
        found = through.value()
    return found


def put(name: str, through: Reparametrized, values: torch.Tensor) -> list[Snapshot]:
    """Set a computed weight and read it back; return what takes it back, or nothing if it was so.

    A weight that does not come out as it was set is refused, and what was set is taken back.
    """
    if _gives(through.value(), values):
        return []
    before = [Snapshot.of(tensor) for tensor in through.state()]
    try:
        with torch.no_grad():
            through.assign(values.clone())
        for snapshot in before:
            snapshot.keep_place()
        good, trouble = _gives(through.value(), values), "does not come out as it was set"
    except Exception as error:
        good, trouble = False, f"cannot be set: {type(error).__name__}: {error}".splitlines()[0]
    if not good:
        take_back(before, through)
        raise InputError(
            f"{name!r} is computed from other parameters and {trouble}: give its parametrization "
            "a right_inverse that gives the weight back, or leave it out by exclude"
        )
    return before


def take_back(snapshots: Sequence[Snapshot], through: Reparametrized) -> None:
    """Give the parameters behind a weight the values that they had."""
    for snapshot in snapshots:
        snapshot.restore()
    through.refresh()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A parameter, where its values lie, and a copy of them."""

    tensor: torch.Tensor
    place: torch.Tensor
    values: torch.Tensor

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Snapshot:
        """Return the snapshot of a parameter as it is."""
        return cls(tensor, tensor.detach(), tensor.detach().clone())

    def keep_place(self) -> None:
        """Move new values to where the old ones were: an assignment may have put them elsewhere."""
        with torch.no_grad():
            if not self._is_there() and self.tensor.shape == self.place.shape:
                self.place.copy_(self.tensor)
                self.tensor.set_(self.place)  # pyright: ignore[reportArgumentType]

    def restore(self) -> None:
        """Put back the values."""
        with torch.no_grad():
            if not self._is_there():
                self.tensor.set_(self.place)  # pyright: ignore[reportArgumentType]
            # Compared as bits: a value that is no number is equal to itself here.
            if not torch.equal(_bits(self.tensor), _bits(self.values)):
                self.tensor.copy_(self.values)

    def _is_there(self) -> bool:
        return (
            self.tensor.untyped_storage()._cdata == self.place.untyped_storage()._cdata
            and self.tensor.shape == self.place.shape
            and self.tensor.stride() == self.place.stride()
        )


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().view(torch.uint8) if tensor.dim() else tensor.detach()


def _gives(found: torch.Tensor, values: torch.Tensor) -> bool:
    """Return whether a computed weight is the values, but for the rounding of its computation."""
    if found.shape != values.shape or not values.numel():
        return found.shape == values.shape
    off = (found.detach().double() - values.detach().double()).abs().max()
    most = 1e-5 + 4 * torch.finfo(values.dtype).eps
    return bool(off <= most * values.detach().double().abs().max())


@contextmanager
def _without_trace(chain: nn.Module) -> Iterator[None]:
    """Keep the buffers of parametrizations: some change them whenever the weight is computed."""
    before = [(buffer, buffer.clone()) for buffer in chain.buffers()]
    try:
        with torch.no_grad():
            yield
    finally:
        with torch.no_grad():
            for buffer, values in before:
                if not buffer.is_meta and not torch.equal(buffer, values):
                    buffer.copy_(values)


def _through_parametrizations(module: nn.Module, name: str, chain: nn.Module) -> Reparametrized:
    reason = ""
    for step in chain:  # pyright: ignore[reportGeneralTypeIssues]
        reason = reason or _PINNED.get(type(step).__name__, "")
        if not reason and not hasattr(step, "right_inverse"):
            reason = f"is computed by {type(step).__name__}, which has no right_inverse"

    def behind() -> list[torch.Tensor]:
        own = dict(chain.named_parameters(recurse=False))
        return [tensor for key, tensor in own.items() if key.startswith("original")]

    def state() -> list[torch.Tensor]:
        return [*chain.parameters(), *chain.buffers()]

    def value() -> torch.Tensor:
        if reason and isinstance(pinned := getattr(chain, "original", None), torch.Tensor):
            return pinned
        with _without_trace(chain):
            whole = getattr(module, name)
        return whole.detach().requires_grad_(any(p.requires_grad for p in behind()))

    def assign(values: torch.Tensor) -> None:
        setattr(module, name, values)

    return Reparametrized((), value, assign, behind, state, reason)


def _through_old_weight_norm(module: nn.Module, name: str, hook: object) -> Reparametrized:
    # Asked for anew each time: a model that is moved to another device has other parameters.
    def behind() -> list[torch.Tensor]:
        return [getattr(module, f"{name}_v"), getattr(module, f"{name}_g")]

    def value() -> torch.Tensor:
        with torch.no_grad():
            whole = hook.compute_weight(module)  # pyright: ignore[reportAttributeAccessIssue]
        return whole.detach().requires_grad_(behind()[0].requires_grad)

    def assign(values: torch.Tensor) -> None:
        v, g = behind()
        with torch.no_grad():
            v.copy_(values)
            g.copy_(torch.norm_except_dim(values, 2, hook.dim))  # pyright: ignore[reportAttributeAccessIssue]
        refresh()

    def refresh() -> None:
        setattr(module, name, value())

    hidden = (f"{name}_v", f"{name}_g")
    return Reparametrized(hidden, value, assign, behind, behind, refresh=refresh)


def _pinned(module: nn.Module, name: str, reason: str) -> Reparametrized:
    def assign(values: torch.Tensor) -> None:
        raise AssertionError(name)

    def behind() -> list[torch.Tensor]:
        return [getattr(module, f"{name}_orig")]

    return Reparametrized((f"{name}_orig",), lambda: behind()[0], assign, behind, behind, reason)

"""Weights that are computed from other parameters: weight norm, and what pins a weight's size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.utils import parametrize

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
    """The parameters that an assignment changes, so that it can be taken back."""
    refuse: str = ""


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
            tensor := getattr(hook, "name", None) or getattr(hook, "_tensor_name", None), str
        ):
            found[tensor] = _pinned(module, tensor, _PINNED.get(kind, _PINNED["PruningContainer"]))
    return found


def _through_parametrizations(module: nn.Module, name: str, chain: nn.Module) -> Reparametrized:
    def value() -> torch.Tensor:
        with torch.no_grad():
            whole = getattr(module, name)
        return whole.requires_grad_(any(p.requires_grad for p in chain.parameters(recurse=False)))

    def assign(values: torch.Tensor) -> None:
        setattr(module, name, values)

    reason = ""
    for step in chain:  # pyright: ignore[reportGeneralTypeIssues]
        reason = reason or _PINNED.get(type(step).__name__, "")
        if not reason and not hasattr(step, "right_inverse"):
            reason = f"is computed by {type(step).__name__}, which has no right_inverse"
    return Reparametrized((), value, assign, lambda: list(chain.parameters(recurse=False)), reason)


def _through_old_weight_norm(module: nn.Module, name: str, hook: object) -> Reparametrized:
    v, g = getattr(module, f"{name}_v"), getattr(module, f"{name}_g")

    def value() -> torch.Tensor:
        with torch.no_grad():
            whole = hook.compute_weight(module)  # pyright: ignore[reportAttributeAccessIssue]
        return whole.detach().requires_grad_(v.requires_grad)

    def assign(values: torch.Tensor) -> None:
        with torch.no_grad():
            v.copy_(values)
            g.copy_(torch.norm_except_dim(values, 2, hook.dim))  # pyright: ignore[reportAttributeAccessIssue]
            setattr(module, name, value())

    return Reparametrized((f"{name}_v", f"{name}_g"), value, assign, lambda: [v, g])


def _pinned(module: nn.Module, name: str, reason: str) -> Reparametrized:
    def assign(values: torch.Tensor) -> None:
        raise AssertionError(name)

    hidden = tuple(key for key in module._parameters if key.startswith(f"{name}_"))
    behind = [getattr(module, key) for key in hidden]
    return Reparametrized(hidden, lambda: behind[0], assign, lambda: behind, reason)

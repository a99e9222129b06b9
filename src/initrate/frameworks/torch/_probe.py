"""One forward and backward of a model, watched module by module, that leaves it as it was."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from initrate.errors import InputError

_SEED = 0
"""Of dropout, so that two looks at one model see the same."""


@dataclass(slots=True)
class Squares:
    """A sum of squares over values, of which the root mean square is taken."""

    total: float = 0.0
    size: int = 0

    def add(self, tensor: torch.Tensor) -> None:
        """Take in the values of a tensor."""
        # Squares of small gradients leave the range of float32.
        exact = torch.float32 if tensor.device.type == "mps" else torch.float64
        norm = float(torch.linalg.vector_norm(tensor.detach(), dtype=exact))
        self.total += norm * norm
        self.size += tensor.numel()

    @property
    def rms(self) -> float | None:
        """The root mean square, or None of nothing."""
        return math.sqrt(self.total / self.size) if self.size else None


@dataclass(slots=True)
class Watched:
    """What was seen of one module, over all its calls."""

    name: str
    kind: str
    activation: Squares = field(default_factory=Squares)
    gradient: Squares = field(default_factory=Squares)
    """Of the loss by the module's output."""
    weight_gradient: Squares = field(default_factory=Squares)
    """Of the loss by the module's own parameters and, of an element of a stack, by all in it."""
    skip: Squares = field(default_factory=Squares)
    """The input of an element of a stack, where its output has the same shape."""
    branch: Squares = field(default_factory=Squares)
    """What such an element adds to its input."""
    stack: str = ""
    """The list of layers that the module is an element of."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What was seen: every module in the order of the first calls, the output and the loss."""

    watched: tuple[Watched, ...]
    output: Any
    loss: float


def probe(model: nn.Module, batch: object, loss: Callable[[Any], torch.Tensor]) -> Probe:
    """Run the model once forward and backward, in training mode; nothing of it is changed.

    `loss` gives a scalar of the model's output. Gradients of parameters are read and not kept.
    """
    trainable = [p for p in model.parameters() if p.requires_grad]
    if not trainable:
        raise InputError("no parameter of the model is trainable: requires_grad is False of all")
    for name, tensor in model.named_parameters():
        if tensor.is_meta or is_lazy(tensor):
            raise InputError(f"{name!r} has no values: expected a model that can run")
    watched = _stacked(model)
    order: dict[str, Watched] = {}
    with unchanged(model), torch.enable_grad(), _hooks(model, watched, order) as remove:
        model.train()
        try:
            output = _run(model, batch)
        except InputError:
            raise
        # What a model raises on a batch that is not its own may be anything.
        except Exception as error:
            raise InputError(
                f"the model does not run on this batch: {_one_line(error)}; expected a tensor, a "
                "tuple of arguments or a dict of named ones, on the model's device"
            ) from error
        # A checkpointed layer runs again in the backward pass, and is counted once.
        remove()
        scalar = loss(output)
        if not isinstance(scalar, torch.Tensor) or scalar.numel() != 1 or not scalar.requires_grad:
            raise InputError("the loss is no scalar that depends on the parameters")
        try:
            gradients = torch.autograd.grad(scalar.sum(), trainable, allow_unused=True)
        except RuntimeError as error:
            raise InputError(
                f"the loss cannot be differentiated: {_one_line(error)}; switch off gradient "
                "checkpointing, or use it with use_reentrant=False"
            ) from error
        by_parameter = dict(zip(map(id, trainable), gradients, strict=True))
        for name, found in order.items():
            module = model.get_submodule(name)
            for parameter in module.parameters(recurse=bool(found.stack)):
                gradient = by_parameter.get(id(parameter))
                if gradient is not None and parameter.dim() > 1:
                    found.weight_gradient.add(gradient)
        return Probe(tuple(order.values()), output, float(scalar.detach()))


def _run(model: nn.Module, batch: object) -> Any:
    if isinstance(batch, Mapping):
        return model(**batch)
    if isinstance(batch, torch.Tensor):
        return model(batch)
    if isinstance(batch, list | tuple):
        return model(*batch)
    raise InputError(
        f"batch is {type(batch).__name__}: expected a tensor, a tuple of arguments or a dict"
    )


def _stacked(model: nn.Module) -> dict[str, Watched]:
    """Return every module to watch, each with the outermost list of layers it is an element of."""
    stacks = {
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.ModuleList | nn.Sequential)
        and "expert" not in name.lower()
        and sum(any(p.dim() > 1 for p in child.parameters()) for child in module.children()) > 1
    }
    watched: dict[str, Watched] = {}
    for name, module in model.named_modules():
        above = name.rpartition(".")[0]
        inside = any(above != other and _is_below(above, other) for other in stacks)
        layer = any(p.dim() > 1 for p in module.parameters())
        element = bool(name) and above in stacks and not inside and layer
        # The model itself may be a list, whose name is empty.
        found = Watched(name, type(module).__name__, stack=(above or "model") if element else "")
        watched[name] = found
    return watched


def _is_below(name: str, other: str) -> bool:
    return other == "" or name.startswith(f"{other}.")


@contextmanager
def _hooks(
    model: nn.Module, watched: Mapping[str, Watched], order: dict[str, Watched]
) -> Iterator[Callable[[], None]]:
    """Watch the modules' outputs; yields what ends it before the backward pass."""

    def hook_of(found: Watched) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            tensor = first_tensor(output)
            if tensor is None:
                return
            order.setdefault(found.name, found)
            found.activation.add(tensor)
            if tensor.requires_grad:
                tensor.register_hook(found.gradient.add)
            entered = first_tensor((args, kwargs))
            if found.stack and entered is not None and _may_be_residual(entered, tensor):
                found.skip.add(entered)
                found.branch.add(tensor.detach() - entered.detach())

        return hook

    handles = [
        module.register_forward_hook(hook_of(watched[name]), with_kwargs=True)
        for name, module in model.named_modules()
    ]

    def remove() -> None:
        for handle in handles:
            handle.remove()

    try:
        yield remove
    finally:
        remove()


def _may_be_residual(entered: torch.Tensor, left: torch.Tensor) -> bool:
    same = entered.untyped_storage().data_ptr() == left.untyped_storage().data_ptr()
    return entered.shape == left.shape and entered.device == left.device and not same


def first_tensor(found: Any) -> torch.Tensor | None:
    """Return the first tensor of numbers with a point in a module's inputs or outputs."""
    if isinstance(found, torch.Tensor):
        return found if found.is_floating_point() and found.numel() else None
    inner: Sequence[Any] = ()
    if isinstance(found, Mapping):
        inner = list(found.values())
    elif isinstance(found, list | tuple):
        inner = found
    return next((t for t in map(first_tensor, inner) if t is not None), None)


@contextmanager
def unchanged(model: nn.Module) -> Iterator[None]:
    """Give back training flags, buffers and all random states as they were."""
    training = {module: module.training for module in model.modules()}
    buffers = {module: dict(module._buffers) for module in model.modules()}
    values = {
        id(buffer): buffer.detach().clone()
        for own in buffers.values()
        for buffer in own.values()
        if buffer is not None
    }
    devices = sorted({p.device.index or 0 for p in model.parameters() if p.device.type == "cuda"})
    state, numpy_state = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(_SEED)
            yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)
        for module, flag in training.items():
            module.training = flag
        for module, own in buffers.items():
            module._buffers.clear()
            module._buffers.update(own)
            for buffer in own.values():
                if buffer is not None and not torch.equal(buffer, values[id(buffer)]):
                    buffer.detach().copy_(values[id(buffer)])


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]} …"

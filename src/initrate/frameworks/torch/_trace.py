"""The tracer: which axis of each parameter the operations of a forward add up."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn

from initrate.errors import InputError
from initrate.frameworks.torch._names import canonical_name, wrapper_prefix
from initrate.frameworks.torch._trace_example import Example, read_example
from initrate.frameworks.torch._trace_mode import Recorder
from initrate.frameworks.torch._trace_use import Trace
from initrate.frameworks.torch._trace_values import Values

Copy = Callable[[torch.Tensor], torch.Tensor]


def trace(model: nn.Module, example: object) -> Trace:
    """Return what the operations of one forward do with every parameter of a model.

    `example` is a batch: a tensor, a tuple of arguments, or a mapping of them by name; a shape may
    stand for a tensor, as in {"input_ids": (2, 16)}. The forward runs on the meta device, without
    memory and with no values but those of masks and places. Where it needs others (a loop over
    the experts that tokens went to) it runs with those of the model and of the batch, if both
    have them. The model is in eval mode while it runs, and is not changed: neither its values nor
    its modes nor the random states.

    >>> model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    >>> found = trace(model, (2, 64))
    >>> found.d_in("0.weight"), found.d_in("2.weight"), found.describe("0.bias")
    (64, 256, 'uses it place by place (addmm)')
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"model is {type(model).__name__}: expected a torch.nn.Module")
    prefix = wrapper_prefix(model)
    inner = model.get_submodule(prefix.removesuffix("."))
    given = read_example(inner, example)
    try:
        recorder = _run(model, inner, given, meta=True)
        return _trace_of(model, recorder, values=False)
    except _Stopped as stopped:
        trouble = f"the forward stops without values: {stopped}"
    held = all(not p.is_meta for p in (*inner.parameters(), *inner.buffers()))
    if not given.real or not held:
        missing = "a model with values" if given.real else "a real batch"
        raise InputError(f"example: {trouble}; give {missing}")
    try:
        recorder = _run(model, inner, given, meta=False)
    except _Stopped as stopped:
        raise InputError(
            f"example: the forward stops at this batch: {stopped}; give one that the model takes"
        ) from None
    return _trace_of(model, recorder, values=True)


class _Stopped(Exception):
    """The forward raised."""


def _on_meta(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(tensor.detach(), device="meta")


def _names(model: nn.Module) -> list[tuple[str, torch.Tensor]]:
    prefix = wrapper_prefix(model)
    return [
        (canonical_name(name, prefix=prefix), parameter)
        for name, parameter in model.named_parameters(remove_duplicate=False)
    ]


def _trace_of(model: nn.Module, recorder: Recorder, *, values: bool) -> Trace:
    """Return the record under the names of the parameters."""
    index, shapes, uses = _indices(model), {}, {}
    for name, parameter in _names(model):
        shapes[name] = tuple(parameter.shape)
        uses[name] = tuple(recorder.record.uses[index[id(parameter)]])
    return Trace(shapes, uses, values)


def _indices(model: nn.Module) -> dict[int, int]:
    """Return the place of every parameter among the storages, tied ones at the same."""
    found: dict[int, int] = {}
    places: dict[object, int] = {}
    for _, parameter in _names(model):
        key: object = id(parameter)
        if type(parameter) in (nn.Parameter, torch.Tensor) and parameter.numel():
            key = (
                parameter.untyped_storage()._cdata,
                int(parameter.storage_offset()),
                tuple(parameter.shape),
                parameter.stride(),
            )
        found[id(parameter)] = places.setdefault(key, len(places))
    return found


def _run(whole: nn.Module, model: nn.Module, example: Example, *, meta: bool) -> Recorder:
    """Return the record of one forward of the model, on copies of its tensors.

    `whole` is the model with what is wrapped around it.
    """
    copy: Copy = _on_meta if meta else torch.Tensor.detach
    known: list[tuple[torch.Tensor, torch.Tensor]] = []
    copies: dict[int, torch.Tensor] = {}
    constants: list[torch.Tensor] = []
    index = _indices(whole)
    parameters: list[list[torch.Tensor]] = [[] for _ in set(index.values())]

    def parameter(tensor: torch.Tensor) -> nn.Parameter:
        if id(tensor) not in copies:
            place = parameters[index[id(tensor)]]
            copies[id(tensor)] = nn.Parameter(copy(tensor), requires_grad=False)
            place.append(copies[id(tensor)])
        found = copies[id(tensor)]
        assert isinstance(found, nn.Parameter)
        return found

    def constant(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in copies:
            # A buffer may be written to, so it is never that of the model itself.
            copies[id(tensor)] = copy(tensor).clone()
            constants.append(copies[id(tensor)])
            if not tensor.is_meta:
                known.append((copies[id(tensor)], tensor))
        return copies[id(tensor)]

    def given(tensor: torch.Tensor) -> torch.Tensor:
        found = _on_meta(tensor) if meta else tensor.detach().clone()
        if not tensor.is_meta:
            known.append((found, tensor))
        return found

    with _unchanged(model), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            _swap(model, parameter, constant)
            batch = example.changed(given)
            recorder = Recorder(parameters, constants, Values(known) if meta else None)
        except Exception as trouble:  # A kind of tensor that has no copy.
            raise _Stopped(_line(trouble)) from None
        try:
            with torch.device("meta") if meta else nullcontext(), recorder:
                model(*batch.args, **batch.kwargs)
        except Exception as trouble:
            after = f" after {recorder.last!r}" if recorder.last else ""
            raise _Stopped(f"{_line(trouble)}{after}") from None
    return recorder


def _line(trouble: Exception) -> str:
    lines = str(trouble).strip().splitlines() or [""]
    return f"{type(trouble).__name__}: {lines[0][:160]}"


def _swap(
    model: nn.Module,
    parameter: Callable[[torch.Tensor], nn.Parameter],
    constant: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    """Put copies in the place of all tensors of the model, and the model into eval mode."""
    for module in model.modules():
        module.training = False
        own: dict[str, Any] = module.__dict__
        for name, found in list(own["_parameters"].items()):
            if found is not None:
                own["_parameters"][name] = parameter(found)
        for name, found in list(own["_buffers"].items()):
            if found is not None:
                own["_buffers"][name] = constant(found)
        for name, found in list(own.items()):
            if type(found) is torch.Tensor:
                own[name] = constant(found)
        if isinstance(module, nn.RNNBase):
            own["_flat_weights"] = [getattr(module, name) for name in module._flat_weights_names]


@contextmanager
def _unchanged(model: nn.Module) -> Iterator[None]:
    """Restore all modules and the random states afterwards, whatever a forward does to them."""
    modules = list(model.modules())
    tables = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")
    before = [
        (module, dict(module.__dict__), {name: module.__dict__[name] for name in tables})
        for module in modules
    ]
    for module in modules:
        for name in tables:
            # The forward gets tables of its own.
            module.__dict__[name] = module.__dict__[name].copy()
    devices = sorted({p.device.index for p in model.parameters() if p.is_cuda})
    python_state, numpy_state = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        for module, attributes, held in before:
            module.__dict__.clear()
            module.__dict__.update(attributes)
            module.__dict__.update(held)
        random.setstate(python_state)
        np.random.set_state(numpy_state)

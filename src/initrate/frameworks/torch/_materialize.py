"""Memory for a model on the meta device, and the values that no rule gives.

A rule draws the weights. What it keeps, and the buffers, must come from the model itself: of a
transformers model from its `_init_weights`, of any other module from its `reset_parameters`. Both
are first tried on the meta device, where they cost nothing: what neither of them writes is refused
by name, before any memory is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from initrate.errors import InputError
from initrate.frameworks.torch._flags import FLAG, transformers_models
from initrate.frameworks.torch._sharded import is_sharded
from initrate.frameworks.torch._writable import TensorRows

_RESETS = ("reset_parameters", "_reset_parameters")


def check_device(device: object) -> torch.device:
    """Return the device that a model can be materialised on.

    >>> check_device("cpu")
    device(type='cpu')
    """
    try:
        found = torch.device(device)  # pyright: ignore[reportArgumentType, reportCallIssue]
        torch.empty(0, device=found)
    except (RuntimeError, TypeError, AssertionError) as error:
        raise InputError(
            f"materialize is {device!r}: expected a device of this machine, such as 'cpu' "
            f"({str(error).splitlines()[0]})"
        ) from None
    if found.type == "meta":
        raise InputError("materialize is 'meta': expected a device with memory, such as 'cpu'")
    return found


@dataclass(frozen=True, slots=True)
class _Place:
    """A parameter or buffer at one of its names."""

    module: nn.Module
    attribute: str
    name: str
    tensor: torch.Tensor
    is_buffer: bool

    @property
    def table(self) -> dict[str, torch.Tensor | None]:
        return self.module._buffers if self.is_buffer else self.module._parameters  # pyright: ignore[reportReturnType]


def materialize_model(
    model: nn.Module, pairs: TensorRows, device: torch.device, seed: int
) -> Callable[[], None]:
    """Give all tensors of a model that are on the meta device memory, and their own values.

    What the plan draws is left as it is: `apply` writes it next. All or nothing: where something
    has no values, or the memory is not enough, the model stays on the meta device. Return what
    puts it back there.
    """
    places = [place for place in _places(model) if place.tensor.is_meta]
    drawn = _drawn(pairs)
    needed = [p for p in places if p.tensor.numel() and id(p.tensor) not in drawn]
    _refuse_attributes(model, pairs)
    owners = _resetting(model, needed)
    with _put_back(places), torch.random.fork_rng(()):
        written = _remake(model, needed, owners, dry=True)
    for place in needed:
        if id(place.tensor) not in written:
            raise _nothing_gives(place)

    def undo() -> None:
        for place in places:
            place.table[place.attribute] = place.tensor

    try:
        _allocate(model, places, device)
        wanted = {(id(p.module), p.attribute, p.is_buffer) for p in needed}
        needed = [p for p in _places(model) if (id(p.module), p.attribute, p.is_buffer) in wanted]
        with torch.random.fork_rng([device] if device.type == "cuda" else ()):
            _seed(device, seed % 2**63)
            _fill_by_model(model, needed, owners)
    except BaseException as error:
        undo()
        if isinstance(error, RuntimeError | MemoryError):
            text = (str(error) or type(error).__name__).splitlines()[0]
            raise InputError(
                f"the model could not be materialised on {device}: {text}; nothing was changed"
            ) from None
        raise
    return undo


def _seed(device: torch.device, seed: int) -> None:
    """Seed the generators that are put back afterwards, and no others."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


def _nothing_gives(place: _Place) -> InputError:
    return InputError(
        f"{place.name!r} has no values on the meta device, and neither _init_weights nor a "
        f"reset_parameters of {type(place.module).__name__} gives it any: build the model on a "
        "real device, or write that method"
    )


def _places(model: nn.Module) -> Iterator[_Place]:
    """Yield every parameter and buffer at every one of its names."""
    for path, module in model.named_modules(remove_duplicate=False):
        for is_buffer, table in ((False, module._parameters), (True, module._buffers)):
            for attribute, tensor in table.items():
                if tensor is not None:
                    name = f"{path}.{attribute}" if path else attribute
                    yield _Place(module, attribute, name, tensor, is_buffer)


def _drawn(pairs: TensorRows) -> set[int]:
    """Return the tensors all of whose values the plan gives, or whose values are of no effect."""
    found: set[int] = set()
    for tensor, rows in pairs:
        if all(row.action in ("draw", "zero") or not row.size for row in rows):
            own = tensor.through.behind() if tensor.through is not None else [tensor.tensor]
            found |= {id(t) for t in own}
    return found


def _refuse_attributes(model: nn.Module, pairs: TensorRows) -> None:
    """Refuse tensors that a module holds as plain attributes, which nothing re-makes."""
    computed = {(id(t.owner), t.attribute) for t, _ in pairs if t.through is not None}
    for path, module in model.named_modules():
        for attribute, found in vars(module).items():
            if isinstance(found, torch.Tensor) and found.is_meta:
                if (id(module), attribute) not in computed:
                    raise InputError(
                        f"{f'{path}.{attribute}'.lstrip('.')!r} is a plain attribute on the meta "
                        "device, which nothing re-makes: make it a buffer, or build the model on "
                        "a real device"
                    )


@contextmanager
def _put_back(places: list[_Place]) -> Iterator[None]:
    """Give the places their tensors back, whatever was put there."""
    try:
        yield
    finally:
        for place in places:
            place.table[place.attribute] = place.tensor


@contextmanager
def _flags(model: nn.Module, needed: list[_Place]) -> Iterator[None]:
    """Tell transformers that these have no values yet, and that all the others have theirs."""
    lacking = {id(place.tensor) for place in needed}
    modules = [m for found in transformers_models(model) for m in found.modules()]
    holders: list[object] = [*modules, *(place.tensor for place in _places(model))]
    before = [(holder, vars(holder).get(FLAG)) for holder in holders]
    try:
        for holder in holders:
            setattr(holder, FLAG, not isinstance(holder, nn.Module) and id(holder) not in lacking)
        yield
    finally:
        for holder, flag in before:
            if flag is None:
                vars(holder).pop(FLAG, None)
            else:
                setattr(holder, FLAG, flag)


def _resetting(model: nn.Module, needed: list[_Place]) -> list[nn.Module]:
    """Return the modules whose own method is to be asked, from the inside out, as they are built.

    A module that has some of its values already would lose them, and is not asked.
    """
    wanted = {id(place.module) for place in needed}
    modules = [module for module in model.modules() if id(module) in wanted]
    return [
        module
        for module in reversed(modules)
        if all(
            tensor is None or tensor.is_meta
            for tensor in (*module._parameters.values(), *module._buffers.values())
        )
    ]


def _remake(
    model: nn.Module, needed: list[_Place], owners: list[nn.Module], *, dry: bool
) -> set[int]:
    """Let the model's own code write the tensors; return those that it has written."""
    written: set[int] = set()
    versions = [place.tensor._version for place in needed]

    def note() -> None:
        for place, version in zip(needed, versions, strict=True):
            now = place.table.get(place.attribute)
            if now is not place.tensor or place.tensor._version != version:
                written.add(id(place.tensor))

    with _flags(model, needed):
        for found in transformers_models(model) if needed else ():
            _attempt(found, "initialize_weights", dry=dry)
    note()
    lacking = {id(place.module) for place in needed if id(place.tensor) not in written}
    for owner in owners:
        method = next((m for m in _RESETS if callable(getattr(owner, m, None))), None)
        if id(owner) in lacking and method is not None:
            _attempt(owner, method, dry=dry)
    note()
    return written


def _fill_by_model(model: nn.Module, needed: list[_Place], owners: list[nn.Module]) -> None:
    """Let the model's own code write the tensors, and see that it writes all of each."""
    floating = [place for place in needed if place.tensor.dtype.is_floating_point]
    for place in floating:
        place.tensor.detach().fill_(torch.nan)
    _remake(model, needed, owners, dry=False)
    for place in floating:
        now = place.table.get(place.attribute)
        if now is None or bool(torch.isnan(now.detach()).any()):
            raise _nothing_gives(place)


def _attempt(owner: nn.Module, method: str, *, dry: bool) -> None:
    """Call a method that writes values; on the meta device it may not be able to."""
    try:
        with torch.no_grad():
            if (call := getattr(owner, method, None)) is not None:
                call()
    except Exception as error:
        if not dry:
            raise
        raise InputError(
            f"{type(owner).__name__}.{method} cannot be run on the meta device "
            f"({type(error).__name__}): build the model on a real device"
        ) from None


def _allocate(model: nn.Module, places: list[_Place], device: torch.device) -> None:
    """Put memory behind the tensors; what shares memory on the meta device shares it then."""
    if any(is_sharded(place.tensor) for place in places):
        _allocate_shards(model, device)
        return
    storages: dict[int, torch.Tensor] = {}
    tensors: dict[int, torch.Tensor] = {}
    for place in places:
        old = place.tensor
        if id(old) not in tensors:
            storage = old.untyped_storage()
            base = storages.get(storage._cdata)
            if base is None:
                base = torch.empty(storage.nbytes(), dtype=torch.uint8, device=device)
                storages[storage._cdata] = base
            fresh = torch.empty(0, dtype=old.dtype, device=device).set_(
                base.untyped_storage(), old.storage_offset(), old.size(), old.stride()
            )
            if isinstance(old, nn.Parameter):
                fresh = nn.Parameter(fresh, requires_grad=old.requires_grad)
            vars(fresh).update(vars(old))
            tensors[id(old)] = fresh
        place.table[place.attribute] = tensors[id(old)]


def _allocate_shards(model: nn.Module, device: torch.device) -> None:
    """Put memory behind tensors that are spread over processes, by their own way."""
    model._apply(lambda t: torch.empty_like(t, device=device) if t.is_meta else t)

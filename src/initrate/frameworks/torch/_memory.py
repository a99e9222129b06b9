"""Where the values of a tensor lie, and whether they may be written there."""

from __future__ import annotations

import sys
from bisect import bisect
from collections.abc import Iterable
from pathlib import Path

import torch

from initrate.errors import InputError


def address(tensor: torch.Tensor) -> tuple[object, int]:
    """Return the memory that a tensor is in, and its first byte there.

    Two storages may be the same memory, as those of one NumPy array are: an address tells. Where
    there is none, as on the meta device, it is the storage itself.

    >>> whole = torch.zeros(8)
    >>> address(whole)[0] == address(whole[2:])[0], address(whole[2:])[1] - address(whole)[1]
    (True, 8)
    """
    storage = tensor.untyped_storage()
    if tensor.is_meta or not storage.nbytes() or not (first := storage.data_ptr()):
        # What has no values shares none with another.
        own = storage._cdata if tensor.numel() else id(tensor)
        return own, int(tensor.storage_offset()) * tensor.element_size()
    return str(tensor.device), first + int(tensor.storage_offset()) * tensor.element_size()


def refuse_lost(name: str, tensor: torch.Tensor) -> None:
    """Refuse a tensor whose values are gone."""
    if tensor.is_meta:
        return
    reach = sum((side - 1) * step for side, step in zip(tensor.shape, tensor.stride(), strict=True))
    end = (tensor.storage_offset() + reach + 1) * tensor.element_size() if tensor.numel() else 0
    if tensor.untyped_storage().nbytes() < end:
        raise InputError(
            f"{name!r} has lost its memory: its storage holds "
            f"{tensor.untyped_storage().nbytes():,} bytes of {end:,}; load or make it anew"
        )


def refuse_negated(name: str, tensor: torch.Tensor) -> None:
    """Refuse a tensor whose values are those of its memory with another sign."""
    if tensor.is_neg() or tensor.is_conj():
        raise InputError(
            f"{name!r} is a view that negates or conjugates: make it a tensor of its own, as by "
            "tensor.resolve_neg().clone()"
        )


def refuse_read_only(named: Iterable[tuple[str, torch.Tensor]]) -> None:
    """Refuse tensors in memory that the system lets nobody write to, as a file mapped to be read.

    A write there would end the process. Linux tells which memory that is; elsewhere nothing is
    refused.
    """
    if sys.platform != "linux":
        return
    starts, ends = _read_only()
    for name, tensor in named:
        if tensor.device.type != "cpu" or not tensor.numel():
            continue
        place = bisect(starts, tensor.data_ptr()) - 1
        if place >= 0 and tensor.data_ptr() < ends[place]:
            raise InputError(
                f"{name!r} lies in memory that is read-only, such as a file mapped to be read: "
                "give the model a copy of it, as by tensor.clone()"
            )


def _read_only() -> tuple[list[int], list[int]]:
    """Return the first and last bytes of the memory that must not be written to."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return [], []
    found: list[tuple[int, int]] = []
    for line in lines:
        span, access = line.split()[:2]
        if "w" not in access:
            first, last = span.split("-")
            found.append((int(first, 16), int(last, 16)))
    found.sort()
    return [first for first, _ in found], [last for _, last in found]

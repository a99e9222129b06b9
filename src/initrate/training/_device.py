"""Where and in which precision a bucket is computed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from initrate.errors import InputError, unknown
from initrate.training._bucket import Execution

_DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.float32}
"""What weights and moments are held in; with bfloat16 only the products are in bfloat16."""


def device_of(execution: Execution) -> torch.device:
    """Return the device; InputError where this machine has none of that name."""
    try:
        device = torch.device(execution.device)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            f"device {execution.device!r} is not to be had here: {str(error).splitlines()[0]}"
        ) from error
    return device


def dtype_of(execution: Execution) -> torch.dtype:
    """Return the type that weights are held in."""
    if execution.dtype not in _DTYPES:
        raise unknown("dtype", execution.dtype, _DTYPES)
    return _DTYPES[execution.dtype]


@contextlib.contextmanager
def threads(execution: Execution) -> Iterator[None]:
    """Give torch the threads of the plan, and back what it had."""
    before = torch.get_num_threads()
    if execution.threads is not None:
        torch.set_num_threads(execution.threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def precision(execution: Execution) -> Iterator[None]:
    """Compute products in bfloat16 or TF32 where the plan says so."""
    tf32 = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = execution.tf32
    kind = torch.device(execution.device).type
    try:
        with torch.autocast(kind, torch.bfloat16, enabled=execution.dtype == "bfloat16"):
            yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = tf32

"""A running bucket on disk: one safetensors file, written whole, checked when it is read."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from initrate.errors import InputError, StoreError
from initrate.files import check_plain, shown, write_whole

_SCHEMA = "1"


@dataclass(slots=True)
class Log:
    """What a running bucket has measured so far, lane by lane; it goes into the checkpoint."""

    curves: list[list[dict[str, Any]]]
    diverged_step: list[int | None]
    loss_sum: list[float]
    """Sum of the training losses since the last logged step, and how many they are."""
    n_losses: int = 0
    last_norm: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, step: int, found: Sequence[tuple[float, float]]) -> None:
        """Add loss and gradient norm of every lane at `step`; one not finite ends its lane."""
        for lane, (loss, norm) in enumerate(found):
            if self.diverged_step[lane] is not None:
                continue
            if math.isfinite(loss) and math.isfinite(norm):
                self.loss_sum[lane] += loss
            else:
                self.diverged_step[lane] = step
        self.n_losses += 1
        self.last_norm = [norm for _, norm in found]


def save_checkpoint(
    path: Path, *, bucket: str, step: int, tensors: Mapping[str, Tensor], log: Log
) -> None:
    """Write the state after `step` updates; an older checkpoint stays until it is whole."""
    state = {
        "curves": log.curves,
        "diverged_step": log.diverged_step,
        "loss_sum": log.loss_sum,
        "n_losses": log.n_losses,
        "last_norm": log.last_norm,
        "seconds": log.seconds,
    }
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    metadata = {"schema": _SCHEMA, "bucket": bucket, "step": str(step), "log": json.dumps(state)}
    metadata["sha256"] = _digest(tensors, metadata)
    write_whole(path, safetensors.torch.save(dict(tensors), metadata=metadata))


def load_checkpoint(path: Path, *, bucket: str) -> tuple[int, dict[str, Tensor], Log]:
    """Return step, tensors and log of the checkpoint; StoreError where it is not this bucket's."""
    # The reader of safetensors would wait for a pipe.
    try:
        check_plain(path, links=False)
    except InputError as error:
        if isinstance(error.__cause__, OSError):
            raise StoreError(f"{error}; give yourself leave to read it") from error
        raise StoreError(f"{error}; remove it, and its bucket starts anew") from error
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = dict(file.metadata() or {})
            # Cloned, for torch rounds differently at another alignment, and a file has its own.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}
    except (safetensors.SafetensorError, OSError) as error:
        raise _damaged(path, str(error).splitlines()[0]) from error
    except (AttributeError, TypeError, ValueError) as error:
        # Of types that this torch lacks, each of its versions says so with another error.
        raise _damaged(path, "it holds numbers of a type that no checkpoint has") from error
    stated = metadata.pop("sha256", None)
    if metadata.get("schema") != _SCHEMA or stated != _digest(tensors, metadata):
        raise _damaged(path, "its checksum does not match")
    if metadata.get("bucket") != bucket:
        raise StoreError(f"{shown(path)} holds another bucket: delete it to start this bucket anew")
    try:
        return int(metadata["step"]), tensors, Log(**json.loads(metadata["log"]))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise _damaged(path, "it has no step or no log") from error


def _damaged(path: Path, why: str) -> StoreError:
    return StoreError(
        f"checkpoint {shown(path)} is damaged ({why}): delete it, and its bucket starts anew"
    )


def _digest(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(dict(metadata), sort_keys=True).encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        # As bytes: NumPy lacks some of the types that a damaged file may hold.
        digest.update(tensors[name].contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()

"""Canonical names: wrappers around a model do not change what keys its random numbers."""

from __future__ import annotations

import re

from torch import nn

_WRAPPERS = re.compile(r"(^|(?<=\.))(_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")
_INNER = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "base_layer")
_OUTER = {
    "DataParallel": "module",
    "DistributedDataParallel": "module",
    "AveragedModel": "module",
    "DeepSpeedEngine": "module",
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
    "OptimizedModule": "_orig_mod",
    "CheckpointWrapper": "_checkpoint_wrapped_module",
    "PeftModel": "base_model.model",
    "LoraModel": "model",
}
"""Wrappers of whole models, by their class, and where they hold the model."""
_MAKERS = ("torch.", "peft.", "deepspeed.")


def wrapper_prefix(model: nn.Module) -> str:
    """Return what stands before all names of a model that is wrapped once or several times.

    >>> wrapper_prefix(nn.DataParallel(nn.Linear(2, 2)))
    'module.'
    """
    for base in type(model).__mro__:
        inner = _OUTER.get(base.__name__)
        if inner is not None and base.__module__.startswith(_MAKERS):
            # Prompts are tuned around the model itself, other adapters around a tuner of it.
            while not _has(model, inner):
                inner = inner.rpartition(".")[0]
            return f"{inner}.{wrapper_prefix(model.get_submodule(inner))}" if inner else ""
    return ""


def _has(model: nn.Module, path: str) -> bool:
    return not path or path in dict(model.named_modules())


def canonical_name(name: str, *, prefix: str = "") -> str:
    """Return the name without the prefix of the wrappers of the model, and of those inside of it.

    >>> canonical_name("module._orig_mod.h.0._orig_mod.c_attn.weight", prefix="module._orig_mod.")
    'h.0.c_attn.weight'
    """
    return _WRAPPERS.sub("", name.removeprefix(prefix)).replace(".base_layer.", ".")


def owner_paths(path: str, *, prefix: str = "") -> list[str]:
    """Return the paths of the modules around a parameter, one for each name in its canonical name.

    Of a wrapper and what it wraps, the latter is meant.

    >>> owner_paths("base_model.model.h.q.base_layer", prefix="base_model.model.")
    ['base_model.model', 'base_model.model.h', 'base_model.model.h.q.base_layer']
    """
    names = path.split(".") if path else []
    outer = prefix.count(".") if f"{path}.".startswith(prefix) else 0
    found = [".".join(names[:outer])]
    for i in range(outer, len(names)):
        below = ".".join(names[: i + 1])
        if names[i] in _INNER:
            found[-1] = below
        else:
            found.append(below)
    return found

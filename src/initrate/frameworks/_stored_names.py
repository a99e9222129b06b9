"""From the names of a checkpoint to those of the model: prefixes, tied weights, stacked experts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from initrate.errors import InputError
from initrate.files import shown
from initrate.frameworks._config_model import ConfigModel
from initrate.frameworks._safetensors import StoredTensor
from initrate.frameworks._stored import stored_moments
from initrate.measure import Moments
from initrate.measure._moments import NOTHING
from initrate.rule import WeightRecord

Source = tuple[StoredTensor, int]
"""A stored tensor, and which of the sources of its conversion it is; 0 where there is none."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What was measured, and what found no place."""

    moments: dict[str, Moments]
    foreign: tuple[WeightRecord, ...]
    """Tensors of the files that the model does not have."""
    missing: tuple[str, ...]
    """Names of the model that the files do not have."""
    unmeasured: tuple[str, ...]
    """Tensors whose values are codes, as those of quantized maps are."""


def measure_stored(model: ConfigModel, tensors: Mapping[str, StoredTensor]) -> Stored:
    """Return the moments of the model's tensors as they lie in the files."""
    rows: dict[str, list[WeightRecord]] = {}
    for record in model.records:
        rows.setdefault(record.name, []).append(record)
    names = {alias: name for name, found in rows.items() for alias in found[0].aliases}
    names |= {name: name for name in rows}
    buffers = {name for name, _ in model.model.named_buffers()}
    rename = _renaming(model.model)
    sources: dict[str, list[Source]] = {}
    moments: dict[str, Moments] = {}
    foreign: list[WeightRecord] = []
    unmeasured: list[str] = []
    for stored, tensor in sorted(tensors.items()):
        name, source = rename(stored)
        if not tensor.measured:
            unmeasured += [] if name in buffers else [stored]
        elif name in names:
            sources.setdefault(name, []).append((tensor, source))
        elif name not in buffers:
            reason = "is in the files and not in the config's model"
            foreign.append(WeightRecord(stored, tensor.shape, refuse=reason))
            moments[stored] = stored_moments(tensor)[0]
    missing: list[str] = []
    for name, found in rows.items():
        # Of a tied weight one name may be stored, or all of them with the same values.
        stored_as = next((x for x in (name, *found[0].aliases) if x in sources), None)
        if stored_as is not None:
            moments |= _measured(found, sources[stored_as])
        elif found[0].size:
            missing.append(name)
    return Stored(moments, tuple(foreign), tuple(missing), tuple(unmeasured))


def _measured(records: Sequence[WeightRecord], sources: Sequence[Source]) -> dict[str, Moments]:
    """Return the moments of one tensor of the model, part by part."""
    first, shape = sources[0][0], records[0].shape
    if len(sources) == 1 and first.shape == shape:
        found = stored_moments(first, [record.where for record in records])
        return {record.key: x for record, x in zip(records, found, strict=True)}
    # Several stored tensors are stacked into one of the model, part after part.
    totals: dict[int, Moments] = {}
    for tensor, source in sources:
        totals[source] = totals.get(source, NOTHING) + stored_moments(tensor)[0]
    if len(records) == 1:
        whole = sum((totals[source] for source in sorted(totals)), start=NOTHING)
        if whole.size == records[0].size:
            return {records[0].key: whole}
    elif [totals[source].size for source in sorted(totals)] == [x.size for x in records]:
        return {x.key: totals[k] for x, k in zip(records, sorted(totals), strict=True)}
    stored = f"{first.name!a} has the shape {list(first.shape)}"
    raise InputError(
        f"{shown(first.path)}: {stored}, and {records[0].name!r} of the config's model has "
        f"{list(shape)}: the config is that of another model"
    )


def _renaming(model: Any) -> Callable[[str], tuple[str, int]]:
    """Return what gives a stored name its name in the model, as transformers loads it."""
    names = {name: True for name, _ in model.named_parameters(remove_duplicate=False)}
    prefix = getattr(model, "base_model_prefix", "")

    def by_prefix(stored: str) -> tuple[str, int]:
        for name in (stored, f"{prefix}.{stored}", stored.removeprefix(f"{prefix}.")):
            if name in names:
                return name, 0
        return stored, 0

    try:
        from transformers.conversion_mapping import get_model_conversion_mapping
        from transformers.core_model_loading import (
            WeightConverter,
            WeightRenaming,
            rename_source_key,
        )

        steps = get_model_conversion_mapping(model)
    except ImportError:  # Before transformers 5 a stored name was that of the model.
        return by_prefix
    converters = [step for step in steps if isinstance(step, WeightConverter)]
    renamings = [step for step in steps if isinstance(step, WeightRenaming)]
    places = {pattern: k for step in converters for k, pattern in enumerate(step.source_patterns)}

    def by_library(stored: str) -> tuple[str, int]:
        if stored in names:
            return stored, 0
        name, pattern = rename_source_key(stored, renamings, converters, prefix, names)
        return (name, places.get(pattern or "", 0)) if name in names else by_prefix(stored)

    return by_library

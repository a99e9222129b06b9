"""A TARGET of the command line: what names a model, and what can be asked of it.

A target is a config.json, a model folder, a safetensors file, or `module:function`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from initrate.errors import InputError
from initrate.files import shown
from initrate.frameworks._checkpoint import CONFIG, folder_tensors
from initrate.frameworks._safetensors import read_header
from initrate.measure import Moments
from initrate.rule import Audit, Plan, Rule, Unknown

_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
EXPECTED = "a config.json, a model folder, a safetensors file, or module:function"


@dataclass(frozen=True, slots=True)
class Values:
    """What one tensor of a target holds."""

    shape: tuple[int, ...]
    dtype: str
    measured: Moments | None
    """None where the values are no numbers of their own."""
    digest: str
    """Equal where type, shape and every bit are."""


@dataclass(frozen=True, slots=True)
class Which:
    """Which tensors of a target are meant, and what becomes of one that is not known."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    unknown: Unknown = "refuse"


EVERY = Which()


class Target(Protocol):
    """A model that a word of the command line names."""

    def plan(self, rule: Rule, which: Which = EVERY) -> Plan:
        """Return what the rule does with every tensor."""
        ...

    def audit(self, rule: Rule | None, which: Which = EVERY, *, waive: Sequence[str] = ()) -> Audit:
        """Return what the tensors measure, against the rule or the one written down, or none."""
        ...

    def notes(self) -> list[str]:
        """Return what a reader should know of how the target was taken."""
        ...

    def values(self) -> Mapping[str, Values]:
        """Return what every tensor holds, by its name."""
        ...


def open_target(word: str, *, layout: str | None = None) -> Target:
    """Return the target that a word names; of files, headers alone are read here.

    `layout` is the path of a config.json that says what the tensors of a bare file are.
    """
    from initrate.frameworks._target_files import FilesTarget

    path = Path(word)
    if not _exists(path):
        if _FUNCTION.fullmatch(word):
            _refuse_layout(word, layout)
            from initrate.frameworks._target_function import FunctionTarget

            return FunctionTarget.load(word)
        raise InputError(f"{shown(word)!s} is not there: expected {EXPECTED}")
    if path.is_dir():
        _refuse_layout(word, layout)
        return _folder(path)
    if path.suffix == ".json":
        _refuse_layout(word, layout)
        return FilesTarget(path, {}, path)
    config = None if layout is None else Path(layout)
    return FilesTarget(path, read_header(path), config)


def _folder(folder: Path) -> Target:
    from initrate.frameworks._target_files import FilesTarget

    tensors, config = folder_tensors(folder), folder / CONFIG
    if config.exists():
        return FilesTarget(folder, tensors, config)
    if not tensors:
        raise InputError(
            f"{shown(folder)} holds neither {CONFIG} nor safetensors: expected a folder as "
            "save_pretrained writes it"
        )
    return FilesTarget(folder, tensors, None)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _refuse_layout(word: str, layout: str | None) -> None:
    if layout is not None:
        raise InputError(
            f"--layout is {layout!r}: it goes with a safetensors file, and {shown(word)!s} says "
            "itself what its tensors are; leave it out"
        )

"""Options that several commands share, with the words and placeholders of their help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from initrate.errors import InputError

if TYPE_CHECKING:
    from initrate.study import ExecutionPlan, StudyConfig

MOST_MEMORY = 1_000_000
"""GiB; what is above it is no memory of a machine."""

Switch = Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")]
"""An option that is there or not; there is no `--no-...` beside it."""

Settings = Annotated[
    tuple[str, ...],
    tyro.conf.UseAppendAction,
    tyro.conf.arg(name="set", metavar="NAME=VALUE", help_behavior_hint="(repeatable)"),
]
"""Fields to set, given any number of times."""


def optional(metavar: str, *, unless: str = "as the preset has it") -> object:
    """Return the mark of an option that need not be given.

    `metavar` stands for what the user gives, `unless` says what holds without it.
    """
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {unless})")


def whole(metavar: str = "N") -> PrimitiveConstructorSpec[int | None]:
    """Return the reader of a whole number, whose complaint is one plain sentence."""
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda words: _number(words[0], int, "a whole number"),
        is_instance=lambda found: found is None or isinstance(found, int),
        str_from_instance=lambda found: [str(found)],
    )


def number(metavar: str) -> PrimitiveConstructorSpec[float | None]:
    """Return the reader of a number, whose complaint is one plain sentence."""
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda words: _number(words[0], float, "a number"),
        is_instance=lambda found: found is None or isinstance(found, int | float),
        str_from_instance=lambda found: [str(found)],
    )


def _number(word: str, kind: type, expected: str):
    try:
        return kind(word)
    except ValueError:
        raise ValueError(f"found {word!r}, expected {expected}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedOptions:
    """Which seeds a study has."""

    seeds: Annotated[int | None, whole(), optional("N", unless="as the study has it")] = None
    """How many seeds: 1, 2 ... N."""
    seed_list: Annotated[str | None, optional("1,2,7", unless="as the study has it")] = None
    """The seeds themselves."""

    def chosen(self) -> int | tuple[object, ...] | None:
        """Return the count, the seeds, or None where the study's own hold."""
        from initrate.study import axis_values

        if self.seeds is not None and self.seed_list is not None:
            raise InputError("--seeds and --seed-list are both given: expected one of the two")
        if self.seed_list is not None:
            return axis_values(self.seed_list, name="seed-list")
        return self.seeds


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOptions:
    """How the study is run: what is asked stays the same, the last digits may not."""

    out: Annotated[Path | None, optional("DIR", unless="a folder in studies/")] = None
    """The folder of the study. If it holds a part of this very study, the rest is trained."""
    dry_run: Switch = False
    """Only say what would be done: cells, buckets, operations, memory, time to expect."""
    threads: Annotated[int | None, whole(), optional("N", unless="all cores")] = None
    """Threads of the arithmetic."""
    memory_limit: Annotated[float | None, number("GIB"), optional("GIB", unless="1.25")] = None
    """What the models of a bucket may take; it decides how many are trained together."""
    device: Annotated[str | None, optional("DEVICE", unless="cpu")] = None
    """Where the models are trained: cpu, cuda, cuda:1 or mps."""
    dtype: Annotated[
        Literal["float32", "float64", "bfloat16"] | None,
        optional("{float32,float64,bfloat16}", unless="float32"),
    ] = None
    """Type of the numbers; bfloat16 is for GPUs that have it."""
    on_error: Literal["stop", "continue"] = "stop"
    """Whether a bucket that fails ends the study."""
    json: Switch = False
    """Write the results to standard output as JSON, in place of tables."""

    def of_plan(self) -> dict[str, Any]:
        """Return what an execution plan is made by, as `run` and `prospect` of a study take it."""
        names = ("threads", "memory_limit", "device", "dtype")
        return {name: getattr(self, name) for name in names}

    def __post_init__(self) -> None:
        if self.memory_limit is not None and not 0 < self.memory_limit <= MOST_MEMORY:
            raise InputError(
                f"--memory-limit is {self.memory_limit:g}: expected GiB above zero, "
                f"{MOST_MEMORY:,} at most"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions(ExecutionOptions):
    """How one study is run, with the choice of a plan that was made before."""

    execution: Annotated[Path | None, optional("FILE", unless="a plan is made")] = None
    """The execution.json of a study of the same cells, to be replayed: buckets, threads, types."""

    def plan(self) -> ExecutionPlan | None:
        """Return the plan of the file, or None where none is named."""
        from initrate.study import read_plan

        return None if self.execution is None else read_plan(self.execution)


def apply_settings(
    config: StudyConfig, settings: Sequence[str], given: Mapping[str, object] | None = None
) -> StudyConfig:
    """Return the study with the fields that `--set` names; several values make an axis.

    `given` are other options by the axis that they set, as in `{"gamma": "0.5"}`: a field that
    one of them says too is refused, for one would win silently.
    """
    from initrate.study import axis_name, axis_values, check_once, override

    single: dict[str, object] = {}
    axes = dict(config.axes)
    names: list[str] = []
    for setting in settings:
        name, sign, text = (part.strip() for part in setting.partition("="))
        if not sign or not name:
            raise InputError(f"--set {setting!r}: expected NAME=VALUE, as in training.lr=1e-3")
        found = axis_values(text, name=name)
        names.append(name)
        check_once(names, option="--set ")
        option = (given or {}).get(axis_name(name))
        if option is not None:
            raise InputError(f"{option} and --set {name} set the same field: give one of the two")
        if len(found) == 1:
            single[name] = found[0]
        else:
            axes[axis_name(name)] = found
    return override(replace(config, axes=axes), single)

"""`initrate run`: any grid, from a study file or a preset."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from initrate.cli._options import (
    SeedOptions,
    Settings,
    StudyOptions,
    apply_settings,
    optional,
)
from initrate.errors import InputError

if TYPE_CHECKING:
    from initrate.study import StudyConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Train any grid over any field of a cell: a study file, or a preset; write the report."""

    study: Annotated[tyro.conf.Positional[Path | None], optional("STUDY.toml", unless="none")] = (
        None
    )
    """A study file; docs/study-file.md has its words."""
    preset: Annotated[str | None, optional("NAME", unless="none")] = None
    """A preset in place of a file; `initrate list presets` names them."""
    seeds: Annotated[SeedOptions, tyro.conf.arg(name="")] = field(default_factory=SeedOptions)
    settings: Settings = ()
    """Any field, as in weight_decay=0.1; several values, as in lr=1e-3,2e-3, make an axis."""
    options: Annotated[StudyOptions, tyro.conf.arg(name="")] = field(default_factory=StudyOptions)

    def run(self) -> int:
        """Train the study and return the exit code."""
        from initrate.cli._study import run_study

        return run_study(self.config(), self.options)

    def config(self) -> StudyConfig:
        """Return the study that the file or the preset says, with `--set` upon it."""
        from initrate.study import load_study, preset, with_seeds

        if (self.study is None) == (self.preset is None):
            raise InputError("run needs one of the two: a study file, or --preset NAME")
        config = load_study(self.study) if self.study else preset(self.preset or "")
        config = apply_settings(config, self.settings)
        return with_seeds(config, self.seeds.chosen())

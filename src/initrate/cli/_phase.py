"""`initrate phase`: the diagram of initialization rate and depth."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from initrate.cli._options import (
    SeedOptions,
    Settings,
    StudyOptions,
    apply_settings,
    optional,
)

if TYPE_CHECKING:
    from initrate.study import StudyConfig


_NINE = "1e-4:3e-4:2.5e-5, the paper's nine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Train the phase diagram of the initialization rate gamma and depth, and write its report.

    Every run answers pairs of anchors it has never seen. The diagram shows which runs give the
    composed answer, which the mirrored one, which only fit, and which fail.
    """

    preset: str = "laptop"
    """Scale, task and grid to start from; `initrate list presets` names them."""
    gamma: Annotated[str | None, optional("A:B:STEP")] = None
    """Initialization rates, as in 0.3:1.0:0.1 (with 1.0) or 0.3,0.5,0.8."""
    depth: Annotated[str | None, optional("2,3,4")] = None
    """Numbers of layers."""
    seeds: Annotated[SeedOptions, tyro.conf.arg(name="")] = field(default_factory=SeedOptions)
    task: Annotated[str | None, optional("NAME")] = None
    """Variant of the task; `initrate list tasks` names them."""
    shape: Annotated[str | None, optional("NAME")] = None
    """Shape of the models; `initrate list shapes` names them."""
    rule: Annotated[str | None, optional("NAME")] = None
    """Rule of initialization; `initrate list rules` names them."""
    protocol: Annotated[Literal["single", "best-lr"] | None, optional("{single,best-lr}")] = None
    """One learning rate, or the best of several for each answer apart, as the paper has it."""
    lrs: Annotated[
        str | None, optional("A:B:STEP", unless="the paper's nine, 1e-4:3e-4:2.5e-5")
    ] = None
    """Learning rates of the protocol best-lr."""
    settings: Settings = ()
    """Any field, as in weight_decay=0.1; several values, as in lr=1e-3,2e-3, make an axis."""
    options: Annotated[StudyOptions, tyro.conf.arg(name="")] = field(default_factory=StudyOptions)

    def run(self) -> int:
        """Train the diagram and return the exit code."""
        from initrate.cli._study import run_study

        return run_study(self.config(), self.options, advise=True)

    def config(self) -> StudyConfig:
        """Return the study that the options say."""
        from initrate import lab

        study = lab.phase(
            self.preset,
            gamma=self.gamma,
            depth=self.depth,
            seeds=self.seeds.chosen(),
            task=self.task,
            shape=self.shape,
            rule=self.rule,
            protocol=self.protocol,
            lrs=self.lrs,
        )
        options = ("gamma", "depth", "task", "shape", "rule", "lrs")
        axis = {"task": "variant", "lrs": "lr"}
        given = {axis.get(o, o): f"--{o}" for o in options if getattr(self, o) is not None}
        config = apply_settings(study.config, self.settings, given)
        # The diagram has the rate across and the depth down, whatever the preset has.
        first = {name: config.axes[name] for name in ("gamma", "depth") if name in config.axes}
        return replace(config, axes={**first, **config.axes})

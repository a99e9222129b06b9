"""`initrate boundary`: where a label begins, found with few of a grid's cells."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from initrate.cli._options import (
    ExecutionOptions,
    SeedOptions,
    Settings,
    apply_settings,
    number,
    optional,
    whole,
)

if TYPE_CHECKING:
    from initrate.boundary import Boundary as Found
    from initrate.boundary import Search
    from initrate.study import Store, StudyConfig

SEEDS = 5
"""Seeds that a cell may have where none are said: as many as the full grid is compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """Find where along an axis a label begins, at each depth, with few of the full grid's cells.

    Each round trains the cells whose labels tell most of where the boundary is, until it is known
    to the resolution. There may be several boundaries at a depth, or none.
    """

    preset: str = "laptop"
    """Scale and task to start from; `initrate list presets` names them."""
    axis: str = "gamma"
    """Along which the boundary is looked for; `initrate list fields` names all there are."""
    by: str = "depth"
    """The second axis: one boundary is looked for at each of its values."""
    gamma: Annotated[str | None, optional("A:B:STEP")] = None
    """Initialization rates; of the axis that is searched, the range from the least to the last."""
    depth: Annotated[str | None, optional("2,3,4")] = None
    """Numbers of layers."""
    resolution: Annotated[
        float | None, number("STEP"), optional("STEP", unless="0.05, or the axis' smaller step")
    ] = None
    """How close a boundary is to be known, and the distance of the values that are tried."""
    confidence: Annotated[float | None, number("P"), optional("P", unless="0.9")] = None
    """Of each boundary's interval."""
    label: Annotated[
        tuple[str, ...],
        tyro.conf.UseAppendAction,
        tyro.conf.arg(metavar="NAME", help_behavior_hint="(repeatable, default: composed)"),
    ] = ()
    """The label that is looked for; of several, any of them counts."""
    width: Annotated[int | None, whole(), optional("N", unless="8")] = None
    """Most cells of a round."""
    seeds: Annotated[SeedOptions, tyro.conf.arg(name="")] = field(default_factory=SeedOptions)
    task: Annotated[str | None, optional("NAME")] = None
    """Variant of the task; `initrate list tasks` names them."""
    shape: Annotated[str | None, optional("NAME")] = None
    """Shape of the models; `initrate list shapes` names them."""
    rule: Annotated[str | None, optional("NAME")] = None
    """Rule of initialization; `initrate list rules` names them."""
    settings: Settings = ()
    """Any field, as in weight_decay=0.1; of the axis, a range, as in weight_decay=0:0.5:0.1."""
    execution: Annotated[ExecutionOptions, tyro.conf.arg(name="")] = field(
        default_factory=ExecutionOptions
    )

    def run(self) -> int:
        """Search and return the exit code."""
        from initrate.boundary import check_folder, search_folder
        from initrate.study import folder_path

        search, options = self.search(), self.execution
        out = options.out
        folder = search_folder(search) if out is None else folder_path(out)
        check_folder(folder, search)
        if options.dry_run:
            from initrate.cli._crossings import dry_run_search

            return dry_run_search(search, folder, options)
        return _run(search, folder, options)

    def search(self) -> Search:
        """Return the search that the options say."""
        from initrate.boundary import plan_search

        given = {
            "labels": self.label or None,
            "resolution": self.resolution,
            "confidence": self.confidence,
            "width": self.width,
        }
        asked = {name: found for name, found in given.items() if found is not None}
        return plan_search(self.config(), axis=self.axis, by=self.by, **asked)

    def config(self) -> StudyConfig:
        """Return the study whose range is searched."""
        from initrate import lab

        chosen = self.seeds.chosen()
        study = lab.phase(
            self.preset,
            gamma=self.gamma,
            depth=self.depth,
            seeds=SEEDS if chosen is None else chosen,
            task=self.task,
            shape=self.shape,
            rule=self.rule,
        )
        options = ("gamma", "depth", "task", "shape", "rule")
        axis = {"task": "variant"}
        given = {axis.get(o, o): f"--{o}" for o in options if getattr(self, o) is not None}
        return apply_settings(study.config, self.settings, given)


def _run(search: Search, folder: Path, options: ExecutionOptions) -> int:
    from initrate.boundary import draw_picture, run_search
    from initrate.cli._crossings import boundary_words, cost_words, crossing_table
    from initrate.cli._display import display
    from initrate.cli._interrupt import stop_on_signal
    from initrate.cli._output import show, tell, write
    from initrate.files import shown
    from initrate.report import count_of
    from initrate.study import run
    from initrate.training import Interrupted

    with stop_on_signal() as should_stop:

        def train(config: StudyConfig, path: Path) -> Store:
            with display(config) as show_event:
                return run(
                    config,
                    path,
                    on_event=show_event,
                    **options.of_plan(),
                    on_error=options.on_error,
                    should_stop=should_stop,
                )

        def on_reading(found: Found) -> None:
            tell(boundary_words(search, found))

        try:
            result = run_search(search, folder, train, on_reading)
        except Interrupted:
            tell(f"interrupted; the same command goes on from here ({shown(folder)})")
            return 130
    # JSON on standard output says that all went well: it comes after whatever may fail.
    picture = draw_picture(result)
    if options.json:
        tell(f"picture: {shown(picture)}")
        write(json.dumps(result.to_dict(), indent=1, allow_nan=False))
    else:
        show(crossing_table(result))
        write(cost_words(result))
        write(f"picture: {shown(picture)}")
    if result.n_failed:
        tell(f"{count_of(result.n_failed, 'run')} failed; the same command tries them again")
        return 1
    return 0

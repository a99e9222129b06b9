"""The laboratory from Python and notebooks: what the commands `phase`, `run` and `report` do.

>>> from initrate import lab
>>> study = lab.phase(preset="smoke", gamma=[0.5, 0.6, 0.8], seeds=2)
>>> len(study.config.axes["gamma"]), study.config.seeds
(3, (1, 2))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from initrate.errors import InputError
from initrate.study import (
    Event,
    Store,
    StudyConfig,
    axis_values,
    default_folder,
    folder_path,
    grid,
    load_study,
    override,
    preset,
    seeds_from_count,
)
from initrate.study import run as run_study

if TYPE_CHECKING:
    from polars import DataFrame

__all__ = ["Study", "open_study", "phase", "study"]


@dataclass(frozen=True, slots=True, repr=False)
class Study:
    """A study and its folder: run it, look at its tables, build its report."""

    config: StudyConfig
    folder: Path

    def run(self, *, on_event: Callable[[Event], None] | None = None, **options: Any) -> Study:
        """Train what is not trained yet and return the study.

        `on_event` is called with what happens; `options` are those of `initrate.study.run`:
        `threads`, `memory_limit` (GiB), `device`, `dtype`, `on_error`, `should_stop`. An
        interrupted run goes on with the next call.
        """
        run_study(self.config, self.folder, on_event=on_event, **options)
        return self

    @property
    def store(self) -> Store:
        """The study's folder, open for reading."""
        return Store.open(self.folder)

    def cells(self) -> DataFrame:
        """Return a row a trained cell: what it is, its scalars, its fit and its label."""
        return self.store.cells()

    def curves(self, cell: str | None = None) -> DataFrame:
        """Return a row a cell and logged step."""
        return self.store.curves(cell)

    def summary(self) -> list[dict[str, object]]:
        """Return a row a point of the grid, over its seeds: counts of labels, median, interval."""
        return self.store.summary()

    def report(self, *, out: Path | str | None = None) -> Path:
        """Build the report and return the path of its page."""
        from initrate.report import build_report

        return build_report(self.store, None if out is None else folder_path(out))

    def __repr__(self) -> str:
        n_done, n_cells = self._progress()
        trained = "all trained" if n_done == n_cells else f"{n_done or 'none'} trained"
        return f"Study {self.config.name!r} in {self.folder}: {n_cells} cells, {trained}"

    def _repr_html_(self) -> str:
        """The summary as a table, for notebooks; all text from files is escaped."""
        head = f"<p>{escape(repr(self))}</p>"
        if not self._progress()[0]:
            return head
        rows = self.summary()
        names = [*self.config.axes, "n_seeds", "labels", "median", "low", "high"]
        titles = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
        body = "".join(f"<tr>{_html_cells(row, names)}</tr>" for row in rows)
        return f"{head}<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"

    def _progress(self) -> tuple[int, int]:
        if (self.folder / "study.json").exists():
            return self.store.progress()
        return 0, len(grid(self.config))


def phase(
    preset: str = "laptop",
    *,
    gamma: object = None,
    depth: object = None,
    seeds: object = None,
    out: Path | str | None = None,
    settings: Mapping[str, object] | None = None,
) -> Study:
    """Return the phase diagram of a preset, gamma by depth, with what is given changed.

    `gamma` and `depth` are ranges ("0.3:1.0:0.1"), lists or single values; `seeds` is a count or
    a list of seeds; `settings` sets any other field of all cells by its name, as in
    `{"lr": 3e-4, "model.d_model": 128}`. Nothing is trained before `run()`.

    >>> phase("smoke", gamma="0.4:0.6:0.1", depth=[1, 2]).config.axes["depth"]
    (1, 2)
    """
    config = _preset(preset)
    if settings is not None:
        config = override(config, settings)
    given = {"gamma": gamma, "depth": depth}
    axes = {name: axis_values(v, name=name) for name, v in given.items() if v is not None}
    config = replace(config, axes={**config.axes, **axes})
    if seeds is not None:
        config = replace(config, seeds=_seeds(seeds), seed_axes={})
    return _in_folder(config, out)


def study(source: Path | str | StudyConfig, *, out: Path | str | None = None) -> Study:
    """Return the study of a study file, or of a configuration made in Python."""
    config = source if isinstance(source, StudyConfig) else load_study(folder_path(source))
    return _in_folder(config, out)


def open_study(folder: Path | str) -> Study:
    """Return the study that a folder holds."""
    store = Store.open(folder)
    return Study(store.config, store.path)


_preset = preset


def _in_folder(config: StudyConfig, out: Path | str | None) -> Study:
    grid(config)  # What is wrong with a cell is said now, and not when it is its turn.
    return Study(config, default_folder(config) if out is None else folder_path(out))


def _seeds(seeds: object) -> tuple[int, ...]:
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        return seeds_from_count(seeds)
    if isinstance(seeds, list | tuple | range):
        return tuple(seeds)
    raise InputError(f"seeds is {seeds!r}: expected a count, or a list of seeds")


def _html_cells(row: Mapping[str, object], names: list[str]) -> str:
    return "".join(f"<td>{escape(_text(row[name]))}</td>" for name in names)


def _text(entry: object) -> str:
    if isinstance(entry, Mapping):
        return ", ".join(f"{count} {name}" for name, count in entry.items())
    return f"{entry:.3g}" if isinstance(entry, float) else "–" if entry is None else str(entry)

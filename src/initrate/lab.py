"""The laboratory from Python and notebooks: what the commands `phase`, `run` and `report` do.

>>> from initrate import lab
>>> study = lab.phase(preset="smoke", gamma=[0.5, 0.6, 0.8], seeds=2)
>>> len(study.config.axes["gamma"]), study.config.seeds
(3, (1, 2))
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from initrate.errors import InputError, function_or_none
from initrate.files import shown
from initrate.study import (
    BucketDone,
    BucketFailed,
    BucketProgress,
    BucketStarted,
    Event,
    Store,
    StudyConfig,
    StudyStarted,
    axis_names,
    axis_values,
    default_folder,
    folder_path,
    grid,
    load_study,
    override,
    preset,
    reading,
    stop_on_signal,
    with_seeds,
)
from initrate.study import run as run_study
from initrate.tasks import AnchorTask
from initrate.training import Interrupted

if TYPE_CHECKING:
    from polars import DataFrame

__all__ = ["PAPER_LRS", "Study", "open_study", "phase", "study"]

PAPER_LRS = "1e-4:3e-4:2.5e-5"
"""The nine peak learning rates of arXiv 2405.05409."""

LINE_SECONDS = 15.0
"""While a bucket runs, a line says about this often how far it is."""


@dataclass(frozen=True, slots=True, repr=False)
class Study:
    """A study and its folder: run it, look at its tables, build its report."""

    config: StudyConfig
    folder: Path

    def run(self, *, on_event: Callable[[Event], None] | None = None, **options: Any) -> Study:
        """Train what is not trained yet and return the study.

        A line on standard error says how far it is after each bucket and about every 15 s;
        `on_event` is called with what happens in place of that. `options` are those of
        `initrate.study.run`: `threads`, `memory_limit` (GiB), `device`, `dtype`, `on_error`,
        `should_stop`. Ctrl-C writes a checkpoint at the next step and raises `KeyboardInterrupt`,
        a second one raises it at once; either way the next call goes on with what there is. A
        `should_stop` of your own, a handler of your own for SIGINT, and threads other than the main
        one keep Ctrl-C as it was.
        """
        listener = function_or_none("on_event", on_event) or _Lines().take
        own = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        if own or options.get("should_stop") is not None:
            run_study(self.config, self.folder, on_event=listener, **options)
            return self
        with stop_on_signal(_tell) as asked:
            # One that comes after the last step stops nothing, and is still to be heard.
            with suppress(Interrupted):
                options["should_stop"] = asked
                run_study(self.config, self.folder, on_event=listener, **options)
            if asked():
                n_done, n_cells = self._progress()
                raise KeyboardInterrupt(
                    f"{n_done} of {n_cells} runs are trained; run() goes on from here "
                    f"({shown(self.folder)})"
                )
        return self

    @property
    def store(self) -> Store:
        """The study's folder, open for reading."""
        return Store.open(self.folder)

    def cells(self) -> DataFrame:
        """Return a row a trained cell: what it is, its scalars, its fit and its label."""
        return self.store.cells()

    def table(self) -> DataFrame:
        """Return a row a trained cell with the few columns that are read first.

        They are the cell, the axes of the study and the seed, the label, and the accuracies that
        it follows from; `cells()` has all columns.
        """
        cells = self.store.cells()
        names = ["cell", *self.config.axes, "lr", "seed", "label", *_ANSWERS]
        return cells.select([name for name in dict.fromkeys(names) if name in cells.columns])

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
        return f"Study {self.config.name!r} in {shown(self.folder)}: {n_cells} cells, {trained}"

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
        with reading(self.folder):
            begun = (self.folder / "study.json").exists()
        if begun:
            return self.store.progress()
        return 0, len(grid(self.config))


def phase(
    preset: str = "laptop",
    *,
    gamma: object = None,
    depth: object = None,
    seeds: object = None,
    task: str | AnchorTask | None = None,
    shape: str | None = None,
    rule: str | None = None,
    protocol: Literal["single", "best-lr"] | None = None,
    lrs: object = None,
    out: Path | str | None = None,
    settings: Mapping[str, object] | None = None,
) -> Study:
    """Return the phase diagram of a preset, gamma by depth, with what is given changed.

    `gamma`, `depth` and `lrs` are ranges ("0.3:1.0:0.1"), lists or single values; `seeds` is a
    count or a list of seeds; `task`, `shape` and `rule` are names that `initrate list` shows; a
    task may also be made in Python: `variant("34-wrong", maps=[5, 1, lambda x: 119 - x, -8])`.
    With `protocol="best-lr"` every cell has the learning rates `lrs`, the paper's nine unless they
    are given. `settings` sets any other field of all cells by its name, as in
    `{"lr": 3e-4, "model.d_model": 128}`. Nothing is trained before `run()`.

    >>> phase("smoke", gamma="0.4:0.6:0.1", depth=[1, 2], task="34-wrong").config.axes["depth"]
    (1, 2)
    """
    config = _preset(preset)
    own = isinstance(task, AnchorTask)
    if own:
        config = replace(config, task=cast("AnchorTask", task))
    named = {"task.variant": None if own else task, "model.shape": shape, "rule.name": rule}
    chosen = {name: found for name, found in named.items() if found is not None}
    config = override(config, chosen)
    if settings is not None:
        _check_apart(settings, gamma=gamma, depth=depth, variant=task, shape=shape, rule=rule)
        config = override(config, settings)
    config = _with_protocol(config, protocol, lrs)
    given = {"gamma": gamma, "depth": depth}
    axes = {name: axis_values(v, name=name) for name, v in given.items() if v is not None}
    config = replace(config, axes={**config.axes, **axes})
    return _in_folder(with_seeds(config, seeds), out)


def study(source: Path | str | StudyConfig, *, out: Path | str | None = None) -> Study:
    """Return the study of a study file, or of a configuration made in Python."""
    config = source if isinstance(source, StudyConfig) else load_study(folder_path(source))
    return _in_folder(config, out)


def open_study(folder: Path | str) -> Study:
    """Return the study that a folder holds."""
    store = Store.open(folder)
    return Study(store.config, store.path)


_preset = preset


@dataclass(slots=True)
class _Lines:
    """Says on standard error how far a study is, where nobody else listens to it."""

    first: BucketProgress | None = None
    """The first logged step of the running bucket: what a checkpoint held took no time here."""
    seconds: float = 0.0
    """When the bucket's last line came."""

    def take(self, event: Event) -> None:
        """Take in an event, and write what it is worth a line."""
        if isinstance(event, StudyStarted):
            for note in event.notes:
                _tell(f"note: {note}")
        elif isinstance(event, BucketStarted):
            self.first, self.seconds = None, 0.0
        elif isinstance(event, BucketProgress):
            self.first = self.first or event
            if event.seconds - self.seconds >= LINE_SECONDS:
                self.seconds = event.seconds
                _tell(self.progress(self.first, event))
        elif isinstance(event, BucketDone):
            done = f"{event.n_done} of {event.n_cells} runs are trained"
            _tell(f"{done}, the last bucket in {event.seconds:.0f} s")
        elif isinstance(event, BucketFailed):
            _tell(f"{_place(event)} failed: {event.error}")

    def progress(self, first: BucketProgress, now: BucketProgress) -> str:
        """Return the step, the time gone and, once it can be told, the time left."""
        from initrate.report import duration

        words = (
            f"{_place(now)} is at step {now.step:,} of {now.steps:,}, {duration(now.seconds)} gone"
        )
        if now.step == first.step:
            return words
        left = (now.seconds - first.seconds) / (now.step - first.step) * (now.steps - now.step)
        return f"{words}, about {duration(left)} left"


def _place(event: BucketProgress | BucketFailed) -> str:
    return f"bucket {event.index + 1} of {event.n_buckets}"


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def __dir__() -> list[str]:
    """Return the public names alone: what is imported here has its home elsewhere."""
    return sorted(__all__)


def _with_protocol(config: StudyConfig, protocol: str | None, lrs: object) -> StudyConfig:
    protocol = config.protocol if protocol is None else protocol
    if isinstance(protocol, str) and protocol == "single":
        if lrs is not None:
            raise InputError("lrs goes with the protocol 'best-lr': give both or neither")
        return replace(config, protocol="single", lrs=())
    chosen = config.lrs or axis_values(PAPER_LRS, name="lrs")
    if lrs is not None:
        chosen = axis_values(lrs, name="lrs")
    # A word that is no protocol is refused by the configuration.
    return replace(config, protocol=cast("Any", protocol), lrs=chosen)


def _check_apart(settings: Mapping[str, object], **given: object) -> None:
    """What an argument says is not said once more by a setting: one would win silently."""
    known = axis_names(settings)
    for name, found in given.items():
        if found is not None and name in known:
            word = "task" if name == "variant" else name
            raise InputError(
                f"{word} and the setting {known[name]!r} set the same field: give one of the two"
            )


def _in_folder(config: StudyConfig, out: Path | str | None) -> Study:
    grid(config)  # What is wrong with a cell is said now, and not when it is its turn.
    return Study(config, default_folder(config) if out is None else folder_path(out))


_ANSWERS = ("seen_accuracy", "inferential_accuracy", "symmetric_accuracy", "probe_accuracy")


def _html_cells(row: Mapping[str, object], names: list[str]) -> str:
    return "".join(f"<td>{escape(_text(row[name]))}</td>" for name in names)


def _text(entry: object) -> str:
    if isinstance(entry, Mapping):
        return ", ".join(f"{count} {name}" for name, count in entry.items())
    return f"{entry:.3g}" if isinstance(entry, float) else "–" if entry is None else str(entry)

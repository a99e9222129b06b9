"""Running a study from the command line: the dry run, the run, and what is printed at its end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from initrate.cli._display import display
from initrate.cli._dry_run import dry_run
from initrate.cli._interrupt import stop_on_signal
from initrate.cli._options import ExecutionOptions
from initrate.cli._results import print_results, results
from initrate.study import PRESETS, Store, StudyConfig, config_digest, preset, run

HOME = Path("studies")
"""Where studies go that are given no folder."""


def run_study(config: StudyConfig, options: ExecutionOptions) -> int:
    """Train the study, write its report, print its results; return the exit code."""
    folder = options.out or default_folder(config)
    if options.dry_run:
        return dry_run(config, options, folder)
    from initrate.training import Interrupted

    with stop_on_signal() as should_stop, display(config) as show:
        try:
            store = run(
                config,
                folder,
                on_event=show,
                threads=options.threads,
                memory_limit=options.memory_limit,
                on_error=options.on_error,
                should_stop=should_stop,
            )
        except Interrupted:
            store = None
    if store is None:
        return _interrupted(folder)
    return _finish(store, options)


def default_folder(config: StudyConfig) -> Path:
    """Return the folder of a study that is given none; a changed preset has one of its own.

    >>> default_folder(preset("laptop"))
    PosixPath('studies/laptop')
    """
    name = "".join(c if c.isalnum() or c in "-_+." else "-" for c in config.name).lstrip(".")
    digest = config_digest(config)
    same = config.name in PRESETS and digest == config_digest(preset(config.name))
    return HOME / (name if same else f"{name or 'study'}-{digest[:6]}")


def _finish(store: Store, options: ExecutionOptions) -> int:
    if options.json:
        json.dump(results(store), sys.stdout, indent=1, allow_nan=False)
        print()
    else:
        print_results(store)
    # Drawing libraries are loaded once the numbers are out.
    from initrate.report import build_report

    page = build_report(store)
    print(f"report: {page}", file=sys.stderr if options.json else sys.stdout)
    n_done, n_cells = store.progress()
    if n_done == n_cells:
        return 0
    left = f"{n_cells - n_done} of {n_cells} runs failed; the same command tries them again"
    print(left, file=sys.stderr)
    return 1


def _interrupted(folder: Path) -> int:
    n_done, n_cells = Store.open(folder).progress()
    print(
        f"interrupted: {n_done} of {n_cells} runs are done; the same command goes on from here "
        f"(initrate report {folder} shows what there is)",
        file=sys.stderr,
    )
    return 130

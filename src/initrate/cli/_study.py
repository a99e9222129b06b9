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
from initrate.study import Store, StudyConfig, default_folder, run


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

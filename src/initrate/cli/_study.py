"""Running a study from the command line: the dry run, the run, and what is printed at its end."""

from __future__ import annotations

import json
from pathlib import Path

from initrate.cli._display import display
from initrate.cli._dry_run import dry_run
from initrate.cli._interrupt import stop_on_signal
from initrate.cli._next import next_step
from initrate.cli._options import StudyOptions
from initrate.cli._output import tell, write
from initrate.cli._results import print_results, results
from initrate.files import shown
from initrate.report import check_report_place
from initrate.study import Store, StudyConfig, default_folder, folder_path, run


def run_study(config: StudyConfig, options: StudyOptions, *, advise: bool = False) -> int:
    """Train the study, write its report, print its results; return the exit code.

    With `advise`, the last line says what to do next.
    """
    folder = default_folder(config) if options.out is None else folder_path(options.out)
    check_report_place(folder)
    if options.dry_run:
        return dry_run(config, options, folder)
    from initrate.training import Interrupted

    with stop_on_signal() as should_stop, display(config) as show:
        try:
            store = run(
                config,
                folder,
                on_event=show,
                **options.of_plan(),
                plan=options.plan(),
                on_error=options.on_error,
                should_stop=should_stop,
            )
        except Interrupted:
            store = None
    if store is None:
        return _interrupted(folder)
    return _finish(store, options, advise)


def _finish(store: Store, options: StudyOptions, advise: bool) -> int:
    from initrate.report import build_report

    # JSON on standard output says that all went well: it comes after whatever may fail.
    page = build_report(store)
    n_done, n_cells = store.progress()
    if options.json:
        tell(f"report: {shown(page)}")
        write(json.dumps(results(store), indent=1, allow_nan=False))
    else:
        print_results(store)
        write(f"report: {shown(page)}")
        if advise and n_done == n_cells:
            write(next_step(store.summary(), store.config))
    if n_done == n_cells:
        return 0
    tell(f"{n_cells - n_done} of {n_cells} runs failed; the same command tries them again")
    return 1


def _interrupted(folder: Path) -> int:
    n_done, n_cells = Store.open(folder).progress()
    tell(
        f"interrupted: {n_done} of {n_cells} runs are done; the same command goes on from here "
        f"(initrate report {shown(folder)} shows what there is)"
    )
    return 130

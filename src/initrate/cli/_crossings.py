"""What a boundary search says: its crossings, what they took, and what they would take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from initrate.boundary import (
    ROUNDS,
    Boundary,
    Crossing,
    Search,
    SearchResult,
    first_batch,
    operations_by_cell,
)
from initrate.cli._dry_run import (
    announce,
    busy_cores,
    check_may_write,
    print_sizes,
    seconds_of,
    sizes_of,
)
from initrate.cli._options import ExecutionOptions
from initrate.cli._output import write
from initrate.report import count_of, label_style, text_of
from initrate.study import prospect

if TYPE_CHECKING:
    from rich.table import Table


def crossing_table(result: SearchResult) -> Table:
    """Return a row a crossing: where it is, how sure that is, and on which side the label is."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    search = result.search
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    level = f"{search.aim.confidence:.0%} interval"
    for head in (search.by, f"{search.axis} of the boundary", level):
        table.add_column(head, justify="right")
    for head in (_label(search), "runs", "resolved"):
        table.add_column(head)
    for found in result.boundaries:
        ends = (str(found.cells), _resolved(found))
        if not found.crossings:
            table.add_row(text_of(found.at), "none", "", _everywhere(result, found), *ends)
        for k, crossing in enumerate(found.crossings):
            table.add_row(
                "" if k else text_of(found.at),
                text_of(round(crossing.estimate, 6)),
                _interval(crossing),
                "from here up" if crossing.rises else "up to here",
                *(("", "") if k else ends),
            )
    return table


def boundary_words(search: Search, found: Boundary) -> str:
    """Return what is known of a boundary so far, in one line."""
    places = [f"{text_of(round(c.estimate, 6))} ({_interval(c)})" for c in found.crossings]
    where = f"{_label(search)} turns at {search.axis} {' and '.join(places)}"
    if not places:
        where = f"no boundary of {_label(search)}"
    sure = "" if found.resolved else f", another picture {found.doubt:.0%} probable"
    runs = count_of(found.cells, "run")
    return f"{search.by} {text_of(found.at)}: {where}{sure}; {runs}, {_resolved(found)}"


def cost_words(result: SearchResult) -> str:
    """Return what the search took beside the full grid, in one line."""
    cells, operations = (
        result.cells / result.full_grid_cells,
        result.operations / result.full_grid_operations,
    )
    return (
        f"{count_of(result.cells, 'run')} in place of the {result.full_grid_cells:,} of the full "
        f"grid: {cells:.0%} of its runs, {operations:.0%} of its operations"
    )


def dry_run_search(search: Search, folder: Path, options: ExecutionOptions) -> int:
    """Print what the full grid would take, and the first round, and return the exit code."""
    check_may_write(folder)
    # No study ever lies there: it is the full grid that is weighed.
    found = prospect(
        search.study,
        folder / ROUNDS / "grid",
        **options.of_plan(),
        there=False,
    )
    load = busy_cores()
    announce(found)
    sizes = sizes_of(search.study, found)
    batch = first_batch(search)
    values = [search.values[k] for k in batch.values]
    seeds = [search.study.seeds[k] for k in batch.seeds]
    if options.json:
        dry = {
            "schema": 1,
            "folder": str(folder),
            "full_grid_cells": search.shape.rows * search.shape.values * search.shape.seeds,
            "full_grid_operations": float(operations_by_cell(search).sum() * search.shape.seeds),
            "full_grid_seconds": seconds_of(sizes),
            "first_round": {search.by: search.rows[0], search.axis: values, "seeds": seeds},
        }
        write(json.dumps(dry, indent=1))
        return 0
    write("the full grid, of which a search trains a part:")
    print_sizes(sizes, folder, load=load)
    write(
        f"first round: {search.by} {text_of(search.rows[0])}, {search.axis} "
        f"{', '.join(map(text_of, values))}, seed {', '.join(map(str, seeds))}"
    )
    return 0


def _interval(crossing: Crossing) -> str:
    return f"{text_of(round(crossing.low, 6))} to {text_of(round(crossing.high, 6))}"


def _label(search: Search) -> str:
    return " or ".join(label_style(label).name for label in search.labels)


def _resolved(found: Boundary) -> str:
    return "resolved" if found.resolved else "not resolved"


def _everywhere(result: SearchResult, found: Boundary) -> str:
    """Whether a row without a crossing has the label in most of its runs, or in few."""
    labels = result.labels[result.search.rows.index(found.at)]
    return "everywhere" if (labels == 1).sum() > (labels == 0).sum() else "nowhere"

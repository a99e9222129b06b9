"""What a study came to, as JSON and as tables."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING

from initrate.cli._board import Board
from initrate.cli._diagram import diagram
from initrate.cli._output import show
from initrate.cli._summary import summary_table

if TYPE_CHECKING:
    from initrate.study import Store

CELL_KEYS = (
    *("cell", "gamma", "gamma_by_role", "depth", "lr", "weight_decay", "seed", "label"),
    *("seen_accuracy", "inferential_accuracy", "symmetric_accuracy", "fit", "training_accuracy"),
    *("probe_accuracy", "best_inferential_accuracy", "best_step", "commutes", "n_unseen"),
    "diverged",
)
"""The keys of a run in the JSON, in order; a study's other axes and seeds follow them."""


def results(store: Store) -> dict[str, object]:
    """Return the results of a study for `--json`."""
    config = store.config
    further = [name for name in config.axes if name not in CELL_KEYS]
    further += [f"seed_{name}" for name in config.seed_axes]
    return {
        "schema": 1,
        "study": str(store.path),
        "cells": [_cell(row, further) for row in store.cells().to_dicts()],
        "summary": [_plain(row) for row in store.summary()],
    }


def print_results(store: Store) -> None:
    """Print the diagram and the summary of a study."""
    board = Board(store.config)
    for row in store.cells().to_dicts():
        board.finish(row)
    width = shutil.get_terminal_size().columns
    show(diagram(board), summary_table(store.summary(), list(store.config.axes), width))


def _cell(row: Mapping[str, object], further: list[str]) -> dict[str, object]:
    found = _plain({key: row.get(key) for key in (*CELL_KEYS, *further)})
    by_role = json.loads(str(found["gamma_by_role"] or "{}"))
    # Where roles differ, the axis says one of several rates.
    return {**found, "gamma": None if by_role else found["gamma"], "gamma_by_role": by_role}


def _plain(row: Mapping[str, object]) -> dict[str, object]:
    """JSON has no numbers that are not finite: they become null."""
    return {
        key: None if isinstance(found, float) and not math.isfinite(found) else found
        for key, found in row.items()
    }

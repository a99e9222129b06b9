"""The engine of initrate, with all that it does in a study: clipping, logging, evaluation."""

from __future__ import annotations

import contextlib

from initrate.bench._problem import OnRound, Problem
from initrate.training import Execution, Interrupted, Progress, train


def run(problem: Problem, on_round: OnRound) -> None:
    """Train until `on_round` says no; it is called where the engine has logged a round."""
    going = True

    def note(progress: Progress) -> None:
        nonlocal going
        if progress.step:  # Step 0 is logged before anything is trained.
            going = on_round([float(row["loss"] or 0) for row in progress.scores])

    with contextlib.suppress(Interrupted):
        train(
            problem.bucket,
            Execution(threads=problem.threads),
            on_progress=note,
            should_stop=lambda: not going,
        )

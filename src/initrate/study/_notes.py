"""What a reader of a study's results should know beforehand, a line each."""

from __future__ import annotations

from initrate.study._config import StudyConfig, grid
from initrate.tasks import lookup_note


def study_notes(config: StudyConfig) -> tuple[str, ...]:
    """Return the notes of a study: a task that a look-up solves, a warm-up that never ends.

    >>> from initrate.study import preset
    >>> study_notes(preset("smoke"))
    ()
    """
    cells = [point.cell for point in grid(config)]
    notes = [lookup_note(task) for task in dict.fromkeys(cell.task for cell in cells)]
    recipes = dict.fromkeys((cell.training.steps, cell.training.warmup_steps) for cell in cells)
    notes += [
        f"the warm-up of {warmup:,} steps is longer than the training of {steps:,}: the learning "
        "rate never comes to its peak"
        for steps, warmup in recipes
        if warmup > steps
    ]
    return tuple(dict.fromkeys(note for note in notes if note))

"""Tasks: training examples, evaluation splits, scores, and what trivial solvers reach."""

from initrate.tasks._anchor import AnchorTask
from initrate.tasks._baselines import BASELINES, baselines
from initrate.tasks._evaluation import SPLITS
from initrate.tasks._floors import loss_floors
from initrate.tasks._task import Integers, Score, Split, Task
from initrate.tasks._variants import (
    TASKS,
    VARIANTS,
    lookup_note,
    task_fields,
    task_from_dict,
    unseen_rows,
    unseen_table,
    variant,
)

__all__ = [
    "BASELINES",
    "SPLITS",
    "TASKS",
    "VARIANTS",
    "AnchorTask",
    "Integers",
    "Score",
    "Split",
    "Task",
    "baselines",
    "lookup_note",
    "loss_floors",
    "task_fields",
    "task_from_dict",
    "unseen_rows",
    "unseen_table",
    "variant",
]

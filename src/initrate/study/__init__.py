"""Studies: grids of cells, how they are run, and the folder that holds all that came out."""

from initrate.study._agreement import Agreement, agreement
from initrate.study._axis import axis_name, axis_names, axis_path, axis_paths, with_value
from initrate.study._cell import Cell, one_rate
from initrate.study._config import (
    GridPoint,
    StudyConfig,
    cells,
    check_once,
    grid,
    override,
    seeds_from_count,
    with_seeds,
)
from initrate.study._cost import Cost, cost, measure_speed, step_operations
from initrate.study._events import (
    BucketDone,
    BucketFailed,
    BucketProgress,
    BucketStarted,
    Event,
    StudyDone,
    StudyStarted,
)
from initrate.study._execution import (
    ExecutionPlan,
    PlannedBucket,
    n_cores,
    plan_execution,
    read_plan,
)
from initrate.study._folder import folder_path, reading
from initrate.study._interrupt import stop_on_signal
from initrate.study._label import LABELS, Thresholds, Verdict, at_floor, label
from initrate.study._notes import study_notes
from initrate.study._presets import PRESETS, default_folder, preset, preset_text
from initrate.study._range import axis_values
from initrate.study._runner import Prospect, Train, prospect, run
from initrate.study._store import Store, relabel
from initrate.study._toml import config_digest, config_to_dict, dump_study, load_study

__all__ = [
    "LABELS",
    "PRESETS",
    "Agreement",
    "BucketDone",
    "BucketFailed",
    "BucketProgress",
    "BucketStarted",
    "Cell",
    "Cost",
    "Event",
    "ExecutionPlan",
    "GridPoint",
    "PlannedBucket",
    "Prospect",
    "Store",
    "StudyConfig",
    "StudyDone",
    "StudyStarted",
    "Thresholds",
    "Train",
    "Verdict",
    "agreement",
    "at_floor",
    "axis_name",
    "axis_names",
    "axis_path",
    "axis_paths",
    "axis_values",
    "cells",
    "check_once",
    "config_digest",
    "config_to_dict",
    "cost",
    "default_folder",
    "dump_study",
    "folder_path",
    "grid",
    "label",
    "load_study",
    "measure_speed",
    "n_cores",
    "one_rate",
    "override",
    "plan_execution",
    "preset",
    "preset_text",
    "prospect",
    "read_plan",
    "reading",
    "relabel",
    "run",
    "seeds_from_count",
    "step_operations",
    "stop_on_signal",
    "study_notes",
    "with_seeds",
    "with_value",
]

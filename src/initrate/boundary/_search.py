"""A search, resolved and checked: what is looked for, where, and how surely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

from initrate.boundary._crossings import Aim
from initrate.boundary._find import Shape
from initrate.errors import InputError, unknown, whole_number
from initrate.study import (
    LABELS,
    Cell,
    StudyConfig,
    axis_name,
    axis_path,
    config_to_dict,
    grid,
    override,
)
from initrate.training import Seeds

Value = int | float | str | bool

SCHEMA = 1
RESOLUTION = 0.05
"""The usual one, where the study's own steps are not smaller."""
FEWEST, MOST = 3, 100
"""Values that are candidates: fewer have no room for a boundary, more take long to weigh."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A boundary search; `plan_search` makes and checks one."""

    study: StudyConfig
    """The full grid: two axes, the candidates and the rows, and all seeds there may be."""
    axis: str
    """Along which the boundary is looked for."""
    by: str
    """What the rows are: one boundary is looked for at each of its values."""
    labels: tuple[str, ...]
    """A cell counts as a hit where its label is one of these."""
    resolution: float
    aim: Aim
    width: int
    """Most cells of a round."""

    @property
    def values(self) -> tuple[float, ...]:
        """The candidates along the axis, in rising order."""
        return cast("tuple[float, ...]", self.study.axes[self.axis])

    @property
    def rows(self) -> tuple[Value, ...]:
        """The values of the second axis."""
        return self.study.axes[self.by]

    @property
    def shape(self) -> Shape:
        """How many rows, values and seeds the full grid has."""
        return Shape(len(self.rows), len(self.values), len(self.study.seeds))

    def place(self, steps: float) -> float:
        """Return where on the axis a number of steps from the first value leads."""
        return round(self.values[0] + steps * self.resolution, 12)

    def to_dict(self) -> dict[str, object]:
        """Return the search as plain tables, all fields said: what is written and compared."""
        return {
            "schema": SCHEMA,
            "axis": self.axis,
            "by": self.by,
            "labels": list(self.labels),
            "resolution": self.resolution,
            "confidence": self.aim.confidence,
            "missed": self.aim.missed,
            "width": self.width,
            "study": config_to_dict(self.study),
        }


def plan_search(
    config: StudyConfig,
    *,
    axis: str = "gamma",
    by: str = "depth",
    labels: Sequence[str] = ("composed",),
    resolution: float | None = None,
    confidence: float = Aim().confidence,
    missed: float = Aim().missed,
    width: int = 8,
) -> Search:
    """Return the search for where, along `axis`, a cell has one of the labels by even chance.

    The range is that of the study's values of the axis; they themselves do not matter. Candidates
    are `resolution` apart: without it 0.05, or the study's step where that is smaller. There is a
    row a value of `by`, and the study's seeds are all that a cell may have.

    >>> from initrate.tasks import variant
    >>> config = StudyConfig(
    ...     name="small", task=variant("34-wrong"), axes={"gamma": (0.4, 1.0), "depth": (2, 3)}
    ... )
    >>> search = plan_search(config, resolution=0.1)
    >>> search.values, search.rows
    ((0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0), (2, 3))
    """
    axis, by = axis_name(axis), axis_name(by)
    if axis == by:
        raise InputError(
            f"axis and by are both {axis}: expected two axes; the boundary along the one is "
            "looked for at each value of the other"
        )
    if not isinstance(labels, tuple | list) or not labels:
        raise InputError(f"labels is {labels!r}: expected names of labels, as in ['composed']")
    for label in labels:
        if not isinstance(label, str) or label not in LABELS:
            raise unknown("label", label, LABELS)
    _check_share("confidence", confidence, 0.5, 1)
    _check_share("missed", missed, 0, 0.5)
    whole_number("width", width, least=1, most=12)
    config = _two_axes(config, axis, by)
    values, resolution = _candidates(axis, config.axes[axis], resolution)
    rows = config.axes[by] if by in config.axes else (_own_value(config, by),)
    study = replace(config, axes={axis: values, by: rows})
    grid(study)  # What is wrong with a cell is said now, and not when it is its turn.
    return Search(
        study=study,
        axis=axis,
        by=by,
        labels=tuple(dict.fromkeys(labels)),
        resolution=resolution,
        aim=Aim(float(confidence), float(missed)),
        width=width,
    )


def _two_axes(config: StudyConfig, axis: str, by: str) -> StudyConfig:
    """The study with no axis beside these two; one that has a single value is none."""
    if config.protocol != "single" or config.seed_axes:
        found = f"protocol {config.protocol}" if config.protocol != "single" else "crossed seeds"
        raise InputError(
            f"the study has {found}: expected the protocol single and seeds that are not crossed, "
            "so that a cell has one label"
        )
    held = axis in config.axes
    sample = config.axes[axis][0] if held else _own_value(config, axis)
    if isinstance(sample, bool) or not isinstance(sample, int | float):
        raise InputError(
            f"axis {axis} is {sample!r}, no number: expected one with an order, as gamma"
        )
    if not held or len(config.axes[axis]) < 2:
        raise InputError(
            f"axis {axis} has one value, {sample!r}: expected a range to look in, as in "
            f"--{'' if axis == 'gamma' else 'set '}{axis}{' ' if axis == 'gamma' else '='}A:B:STEP"
        )
    others = {name: v for name, v in config.axes.items() if name not in (axis, by)}
    for name, values in others.items():
        if len(values) > 1:
            raise InputError(
                f"the study has {len(values)} values of {name} beside {axis} and {by}: expected "
                f"one, as in --set {name}={values[0]}; or take it for --axis or --by"
            )
    return override(config, {name: values[0] for name, values in others.items()})


def _candidates(
    axis: str, values: Sequence[Value], resolution: float | None
) -> tuple[tuple[float, ...], float]:
    """The values at equal distances from the least to the largest, and the distance."""
    ordered = sorted(cast("Sequence[float]", values))
    low, high = ordered[0], ordered[-1]
    whole = isinstance(values[0], int)
    if resolution is None:
        step = round(min(b - a for a, b in pairwise(ordered)), 12)
        resolution = step if whole else min(RESOLUTION, step)
    number = isinstance(resolution, int | float) and not isinstance(resolution, bool)
    if not number or not 0 < resolution < float("inf"):
        raise InputError(f"resolution is {resolution!r}: expected a number above zero")
    if whole and resolution != int(resolution):
        raise InputError(f"resolution is {resolution}: {axis} has whole numbers; expected one too")
    n_steps = (high - low) / resolution
    if not FEWEST - 1 - 1e-6 <= n_steps <= MOST - 1 + 1e-6:
        raise InputError(
            f"axis {axis} from {low} to {high} has {int(n_steps + 1e-6) + 1:,} values {resolution} "
            f"apart: expected {FEWEST} to {MOST}; give another resolution, or another range"
        )
    n = round(n_steps)
    if abs(n_steps - n) > 1e-6:
        raise InputError(
            f"axis {axis} from {low} to {high}: steps of {resolution} miss {high}; expected a "
            "resolution that divides the range"
        )
    if whole:
        step = int(resolution)
        return tuple(int(low) + k * step for k in range(n + 1)), step
    return tuple(round(low + k * resolution, 12) for k in range(n + 1)), float(resolution)


def _own_value(config: StudyConfig, name: str) -> Value:
    """The one value that a field has in all cells of the study."""
    cell = Cell(config.task, config.model, config.rule, config.training, Seeds())
    entry: object = cell.to_dict()
    for part in axis_path(name).split("."):
        table = cast("Mapping[str, object]", entry) if isinstance(entry, Mapping) else {}
        entry = table.get(part)
    if not isinstance(entry, int | float | str):
        raise InputError(
            f"axis {name} has no value in this study: expected values, as in --set {name}=A,B"
        )
    return entry


def _check_share(name: str, found: float, low: float, high: float) -> None:
    number = isinstance(found, int | float) and not isinstance(found, bool)
    if not number or not low < found < high:
        raise InputError(f"{name} is {found!r}: expected a number between {low:g} and {high:g}")

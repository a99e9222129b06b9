"""A study: the cells it is made of, said by a base, axes, seeds and a protocol."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, TypeVar, cast, get_args

from initrate.errors import InputError, unknown, whole_number
from initrate.model import ModelConfig
from initrate.rule import Rule
from initrate.study._axis import axis_name, in_order, of_its_kind, with_seed, with_value
from initrate.study._cell import Cell, check_seed
from initrate.study._range import Value, axis_values
from initrate.tasks import AnchorTask
from initrate.training import Seeds, Training

Protocol = Literal["single", "best-lr"]
_V = TypeVar("_V")

MOST_CELLS = 100_000
"""A study of more cells is taken for a slip in an axis."""


_KINDS: Mapping[str, type] = {
    "task": AnchorTask,
    "model": ModelConfig,
    "rule": Rule,
    "training": Training,
    "axes": Mapping,
    "seed_axes": Mapping,
}
_A = {kind: f"a {kind.__name__}" for kind in (ModelConfig, Rule, Training)} | {
    AnchorTask: "an AnchorTask, as variant('34-wrong') gives",
    Mapping: "a mapping of names to values, as in {'gamma': (0.5, 0.8)}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyConfig:
    """The whole of a study; every combination of axis values and seeds is a cell.

    `axes` maps names of scalar fields (`gamma`, `depth`, `lr`, `training.batch` ...) to values.
    A seed of `seeds` is all four seeds of a cell, but those that `seed_axes` crosses with each
    other, as in `{"init": (1, 2), "order": (1, 2)}`. With `protocol="best-lr"` every cell is
    trained at each of `lrs`, and the summary takes maxima over them, called so.

    >>> from initrate.tasks import variant
    >>> config = StudyConfig(
    ...     name="small", task=variant("34-wrong"), axes={"gamma": (0.5, 0.8)}, seeds=(1, 2)
    ... )
    >>> [(cell.seeds.init, cell.rule.gamma) for cell in cells(config)]
    [(1, 0.5), (1, 0.8), (2, 0.5), (2, 0.8)]
    """

    name: str
    task: AnchorTask
    model: ModelConfig = field(default_factory=ModelConfig)
    rule: Rule = field(default_factory=Rule)
    training: Training = field(default_factory=Training)
    axes: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    seeds: tuple[int, ...] = (1,)
    seed_axes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    protocol: Protocol = "single"
    lrs: tuple[float, ...] = ()
    description: str = ""

    def __post_init__(self) -> None:
        _check_texts(self.name, self.description)
        for name, kind in _KINDS.items():
            if not isinstance(found := getattr(self, name), kind):
                raise InputError(f"study {name} is {found!r}: expected {_A[kind]}")
        axes = _checked_axes(self.axes)
        object.__setattr__(self, "axes", MappingProxyType(axes))
        seed_axes = {name: _checked_seeds(v, name=name) for name, v in self.seed_axes.items()}
        object.__setattr__(self, "seed_axes", MappingProxyType(seed_axes))
        object.__setattr__(self, "seeds", _checked_seeds(self.seeds, name="list"))
        object.__setattr__(self, "lrs", _checked_lrs(self.lrs, self.protocol, axes))
        n_cells = math.prod(len(values) for values in self.all_axes.values()) * len(self.seeds)
        n_cells *= math.prod(len(values) for values in seed_axes.values())
        if n_cells > MOST_CELLS:
            raise InputError(f"the study has {n_cells:,} cells: expected at most {MOST_CELLS:,}")

    @property
    def all_axes(self) -> Mapping[str, tuple[Value, ...]]:
        """The axes, with the learning rates of the protocol as one of them."""
        lrs: dict[str, tuple[Value, ...]] = {"lr": self.lrs} if self.lrs else {}
        return {**lrs, **self.axes}

    def __hash__(self) -> int:
        return hash((self.name, self.seeds, tuple(self.axes.items()), self.lrs))


@dataclass(frozen=True, slots=True)
class GridPoint:
    """A cell and where it lies in the grid of its study."""

    cell: Cell
    id: str
    axes: Mapping[str, Value]
    seed: int | None
    """The one number that is all four seeds; None in a crossed design."""


def grid(config: StudyConfig) -> tuple[GridPoint, ...]:
    """Return the points of a study, seed by seed, so that a whole one-seed diagram comes first."""
    base = Cell(config.task, config.model, config.rule, config.training, Seeds())
    by_axes = [_on_axes(base, values) for values in _products(config.all_axes)]
    points: list[GridPoint] = []
    for seed in config.seeds:
        for crossed in _products(config.seed_axes):
            for values, cell in by_axes:
                seeded = with_seed(cell, "all", seed)
                for name, number in crossed.items():
                    seeded = with_seed(seeded, name, number)
                points.append(
                    GridPoint(seeded, seeded.id, values, None if config.seed_axes else seed)
                )
    _check_points(points)
    return tuple(points)


def cells(config: StudyConfig) -> tuple[Cell, ...]:
    """Return the cells of a study, seed by seed."""
    return tuple(point.cell for point in grid(config))


def override(config: StudyConfig, settings: Mapping[str, object]) -> StudyConfig:
    """Return the study with fields of all its cells set, by axis name or dotted path.

    A field that was an axis is no longer one.

    >>> from initrate.tasks import variant
    >>> config = StudyConfig(name="small", task=variant("34-wrong"), axes={"lr": (1e-3, 2e-3)})
    >>> changed = override(config, {"training.lr": 5e-4, "depth": 3})
    >>> changed.training.lr, changed.model.n_layers, dict(changed.axes)
    (0.0005, 3, {})
    """
    if not isinstance(settings, Mapping):
        raise InputError(f"settings is {settings!r}: expected a mapping, as in {{'lr': 0.001}}")
    named = {axis_name(name): found for name, found in settings.items()}
    check_once(settings)
    if config.lrs and "lr" in named:
        raise InputError(
            "lr and the protocol 'best-lr' both set the learning rate: give its lrs, or the "
            "protocol 'single'"
        )
    cell = Cell(config.task, config.model, config.rule, config.training, Seeds())
    for name in in_order(named):
        cell = with_value(cell, name, named[name])
    return replace(
        config,
        task=cell.task,
        model=cell.model,
        rule=cell.rule,
        training=cell.training,
        axes={name: values for name, values in config.axes.items() if name not in named},
    )


def check_once(names: Iterable[str], *, option: str = "") -> None:
    """Check that no field is named twice; `option` is what stands before a name in the message.

    >>> check_once(["lr", "training.lr"])
    Traceback (most recent call last):
        ...
    initrate.errors.InputError: lr and training.lr set the same field: give one of the two
    """
    seen: dict[str, str] = {}
    for given in names:
        name = axis_name(given)
        if name in seen:
            raise InputError(
                f"{option}{seen[name]} and {option}{given} set the same field: give one of the two"
            )
        seen[name] = given


def with_seeds(config: StudyConfig, seeds: object) -> StudyConfig:
    """Return the study with a count of seeds, or with these seeds; None leaves it as it is.

    >>> from initrate.tasks import variant
    >>> with_seeds(StudyConfig(name="small", task=variant("34-wrong")), [4, 7]).seeds
    (4, 7)
    """
    if seeds is None:
        return config
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        return replace(config, seeds=seeds_from_count(seeds), seed_axes={})
    if isinstance(seeds, list | tuple | range):
        return replace(config, seeds=tuple(seeds), seed_axes={})
    raise InputError(f"seeds is {seeds!r}: expected a count, or a list of seeds")


def seeds_from_count(count: object) -> tuple[int, ...]:
    """Return the seeds 1, 2, ... of a count.

    >>> seeds_from_count(3)
    (1, 2, 3)
    """
    whole_number("the count of seeds", count, least=1, most=MOST_CELLS)
    return tuple(range(1, cast("int", count) + 1))


def _products(axes: Mapping[str, tuple[Value, ...]]) -> list[dict[str, Value]]:
    products = itertools.product(*axes.values())
    return [dict(zip(axes, combination, strict=True)) for combination in products]


def _on_axes(cell: Cell, values: Mapping[str, Value]) -> tuple[Mapping[str, Value], Cell]:
    for name in in_order(values):
        cell = with_value(cell, name, values[name])
    return values, cell


def _check_points(points: list[GridPoint]) -> None:
    ids: dict[str, GridPoint] = {}
    for point in points:
        if point.id in ids:
            raise InputError(
                f"two cells of the study are one and the same: {dict(ids[point.id].axes)} and "
                f"{dict(point.axes)}, seed {point.seed}; expected axes that set different fields"
            )
        ids[point.id] = point
        task, model = point.cell.task, point.cell.model
        outside = [k for k in point.cell.training.loss_positions if k >= task.length]
        if outside:
            raise InputError(
                f"training loss_positions holds {outside[0]}: the task's sequences have "
                f"{task.length} tokens; expected positions from 0 to {task.length - 1}"
            )
        if model.positions == "learned" and task.length > model.max_positions:
            raise InputError(
                f"model max_positions is {model.max_positions}: the task's sequences have "
                f"{task.length} tokens; expected at least as many positions"
            )


def _check_texts(name: object, description: object) -> None:
    if not isinstance(name, str) or not 1 <= len(name) <= 100 or not name.isprintable():
        raise InputError(f"study name is {name!r}: expected 1 to 100 printable characters")
    if not isinstance(description, str):
        raise InputError(f"study description is {description!r}: expected a text")


def _checked_axes(axes: Mapping[str, object]) -> dict[str, tuple[Value, ...]]:
    checked: dict[str, tuple[Value, ...]] = {}
    for given, found in axes.items():
        name = axis_name(given)
        if name in checked:
            raise InputError(f"axis {name!r} is given twice: expected one list of values")
        values = tuple(of_its_kind(name, v) for v in axis_values(found, name=name))
        if len({_kind(v) for v in values}) > 1:
            # They would have no common column in a table.
            raise InputError(
                f"axis {name} has words and numbers together: {list(values)[:5]}; expected values "
                "of one kind, or a study for each"
            )
        checked[name] = _no_repeats(values, name=f"axis {name}")
    return checked


def _kind(found: Value) -> str:
    return "switch" if isinstance(found, bool) else "word" if isinstance(found, str) else "number"


def _checked_seeds(seeds: object, *, name: str) -> tuple[int, ...]:
    if not isinstance(seeds, tuple | list) or not seeds:
        raise InputError(f"seeds {name} is {seeds!r}: expected at least one seed, as in [1, 2, 3]")
    return _no_repeats(tuple(check_seed(seed) for seed in seeds), name="the list of seeds")


def _checked_lrs(
    lrs: tuple[float, ...], protocol: object, axes: Mapping[str, tuple[Value, ...]]
) -> tuple[float, ...]:
    if not isinstance(protocol, str) or protocol not in get_args(Protocol):
        raise unknown("protocol", protocol, get_args(Protocol))
    if not isinstance(lrs, tuple | list):
        raise InputError(f"protocol lrs is {lrs!r}: expected a list of learning rates")
    if (protocol == "best-lr") != bool(lrs):
        raise InputError(
            f"protocol {protocol!r} with lrs {list(lrs)}: give learning rates with 'best-lr', "
            "and only there"
        )
    if lrs and "lr" in axes:
        raise InputError("axis lr and protocol best-lr both set the learning rate: give one")
    values = axis_values(list(lrs), name="lrs") if lrs else ()
    if any(not isinstance(v, int | float) or isinstance(v, bool) for v in values):
        raise InputError(f"protocol lrs is {list(lrs)}: expected numbers")
    return _no_repeats(tuple(float(v) for v in values), name="the list of lrs")


def _no_repeats(values: tuple[_V, ...], *, name: str) -> tuple[_V, ...]:
    repeated = [v for k, v in enumerate(values) if v in values[:k]]
    if repeated:
        raise InputError(f"{name} has {repeated[0]!r} twice: expected values that differ")
    return values

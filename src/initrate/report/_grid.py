"""The grid of a study: which finished runs belong to which cell of the map."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from initrate.report._source import Axis, Row, Source, number


@dataclass(frozen=True, slots=True)
class Group:
    """One cell of the map: all seeds (and, under best-lr, all learning rates) of one setting."""

    index: int
    words: str
    """The setting in words: "γ 0.8, depth 3"."""
    settings: tuple[str, ...]
    """The same apart, in axis order: ("γ 0.8", "depth 3")."""
    members: tuple[int, ...]
    """Places in `Source.cells`."""


@dataclass(frozen=True, slots=True)
class Facet:
    """One table of the map; `groups[row][column]`."""

    words: str
    """What sets it apart from the other tables; empty where it is the only one."""
    groups: tuple[tuple[Group, ...], ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """The map: the first axis goes across, the second down, each further one opens tables."""

    columns: Axis | None
    rows: Axis | None
    facets: tuple[Facet, ...]

    @property
    def groups(self) -> tuple[Group, ...]:
        """All cells of the map, in reading order."""
        return tuple(group for facet in self.facets for row in facet.groups for group in row)


def make_grid(source: Source) -> Grid:
    """Return the grid of a study with any number of axes; settings without a run are empty."""
    axes = source.axes
    columns = axes[0] if axes else None
    rows = axes[1] if len(axes) > 1 else None
    further = axes[2:]
    places = _places(source)
    index = itertools.count()
    facets = []
    for facet_place in itertools.product(*(range(len(axis.values)) for axis in further)):
        table = []
        for row in range(len(rows.values)) if rows else range(1):
            line = []
            for column in range(len(columns.values)) if columns else range(1):
                place = (column, row, *facet_place)[: len(axes)]
                line.append(_group(next(index), axes, place, places))
            table.append(tuple(line))
        words = ", ".join(_settings(further, facet_place))
        facets.append(Facet(words=words, groups=tuple(table)))
    return Grid(columns=columns, rows=rows, facets=tuple(facets))


def member_rows(source: Source, group: Group) -> list[Row]:
    """Return the finished runs of one cell of the map."""
    return [source.cells[member] for member in group.members]


def by_seed(source: Source, group: Group) -> list[list[int]]:
    """Return the runs of one cell of the map, seed by seed.

    Under best-lr a seed counts once all its learning rates are trained: a maximum over fewer
    would stand beside maxima over all.
    """
    seeds: dict[tuple[object, ...], list[int]] = {}
    for member in group.members:
        row = source.cells[member]
        key = tuple(row.get(column) for column in source.seed_columns)
        seeds.setdefault(key, []).append(member)
    least = max(1, len(source.lrs))
    return [members for members in seeds.values() if len(members) >= least]


def chosen_by_training_loss(source: Source, group: Group) -> list[int]:
    """Return, for each seed, the run whose final training loss is lowest.

    This is the choice of a learning rate that looks at no answer to an unseen pair.
    """
    return [
        min(members, key=lambda member: _loss(source.cells[member]))
        for members in by_seed(source, group)
    ]


def _loss(row: Row) -> float:
    loss = number(row, "final_training_loss")
    return math.inf if loss is None or row.get("diverged") else loss


def _group(
    index: int,
    axes: tuple[Axis, ...],
    place: tuple[int, ...],
    places: dict[tuple[int, ...], list[int]],
) -> Group:
    return Group(
        index=index,
        words=", ".join(_settings(axes, place)) or "The one setting",
        settings=_settings(axes, place),
        members=tuple(places.get(place, ())),
    )


def _settings(axes: Sequence[Axis], place: Sequence[int]) -> tuple[str, ...]:
    return tuple(a.setting(i) for a, i in zip(axes, place, strict=True))


def _places(source: Source) -> dict[tuple[int, ...], list[int]]:
    lookups = [{_key(v): i for i, v in enumerate(axis.values)} for axis in source.axes]
    places: dict[tuple[int, ...], list[int]] = {}
    for member, row in enumerate(source.cells):
        place = tuple(
            lookup.get(_key(row.get(axis.column)))
            for axis, lookup in zip(source.axes, lookups, strict=True)
        )
        known = tuple(i for i in place if i is not None)
        if len(known) == len(place):
            places.setdefault(known, []).append(member)
    return places


def _key(found: object) -> object:
    """Return an axis value as a dictionary key: ranges are rounded to 12 digits, lists tupled."""
    if isinstance(found, bool) or found is None:
        return str(found)
    if isinstance(found, int | float):
        return float(f"{found:.12g}")
    if isinstance(found, list | tuple):
        return tuple(_key(part) for part in found)
    return str(found)

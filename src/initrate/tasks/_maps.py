"""Maps of single anchors, their compositions, and every answer a task knows of."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from initrate.errors import InputError, in_line
from initrate.tasks._task import Integers

if TYPE_CHECKING:
    from initrate.tasks._anchor import AnchorTask

Map = int | tuple[tuple[int, int], ...]
"""A map of integers: a shift, or a table of (value, image) sorted by value."""
GivenMap = Map | Mapping[int, int] | Sequence[Sequence[int]] | Callable[[int], int]
"""What a user may give as a map; it is stored as a `Map`."""
Pair = tuple[int, ...]
"""The anchors of a sequence in order, `n_anchors` of them."""

_MOST_PAIRS = 4_096
_LARGEST = 1_000_000

# Symmetric answers that no composition gives, in the order in which the follow-up's study of data
# complexity (arXiv 2501.08537) puts them in.
RANDOM_GROUPS: tuple[tuple[Pair, int], ...] = (
    ((1, 2), 4),
    ((1, 3), 1),
    ((1, 4), -5),
    ((2, 3), 5),
    ((2, 4), -9),
    ((3, 4), -6),
)


def is_whole(given: object) -> bool:
    """Return whether this is a whole number (True and False are not)."""
    return isinstance(given, int | np.integer) and not isinstance(given, bool)


def plain_map(given: object, *, name: str) -> Map | Callable[[int], int]:
    """Return a shift or a sorted table; a function comes back as it is.

    >>> plain_map({2: 7, 1: 9}, name="anchor 1")
    ((1, 9), (2, 7))
    """
    if is_whole(given):
        return _bounded(given, name)
    if callable(given):
        return cast("Callable[[int], int]", given)
    items: Iterable[object] = ()
    if isinstance(given, Mapping):
        items = given.items()
    elif isinstance(given, Sequence) and not isinstance(given, str):
        items = given
    table: dict[int, int] = {}
    for item in items:
        entry = tuple(item) if isinstance(item, Sequence) and not isinstance(item, str) else ()
        if len(entry) != 2:
            raise _bad_map(name, given)
        value, image = whole_of(entry[0]), whole_of(entry[1])
        if value is None or image is None:
            raise _bad_map(name, given)
        value, image = _bounded(value, name), _bounded(image, name)
        if table.setdefault(value, image) != image:
            raise InputError(f"the map of {name} gives {value} two images: expected one")
    if not table:
        raise _bad_map(name, given)
    return tuple(sorted(table.items()))


def whole_of(given: object) -> int | None:
    """Return a whole number, also one written as text (the keys of a TOML table); else None.

    >>> whole_of("-3"), whole_of("three")
    (-3, None)
    """
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return int(given)
    if isinstance(given, str) and re.fullmatch(r"\s*-?[0-9]{1,18}\s*", given):
        return int(given)
    return None


def _bounded(given: object, name: str) -> int:
    number = int(cast(int, given))
    if abs(number) > _LARGEST:
        shown = str(number) if abs(number) < 10**20 else "beyond all bounds"
        raise InputError(
            f"the map of {name} has the number {shown}: expected at most {_LARGEST} in size"
        )
    return number


def _bad_map(name: str, given: object) -> InputError:
    return InputError(
        f"the map of {name} is {in_line(given)}: expected a shift (a whole number), a table of "
        "(value, image) pairs, or in Python a function"
    )


def tabulated(
    given: Mapping[str, Map | Callable[[int], int]], *, keys: Sequence[int], n_anchors: int
) -> tuple[Map, ...]:
    """Return maps without functions: each function as its table over all values that reach it.

    A value reaches a map when fewer than `n_anchors` maps, in any order, lead to it from a key.

    >>> tabulated({"anchor 1": 1, "anchor 2": lambda x: 9 - x}, keys=[3, 4], n_anchors=2)
    (1, ((3, 6), (4, 5), (5, 4), (6, 3)))
    """
    known: dict[str, dict[int, int]] = {
        name: {} if callable(found) or isinstance(found, int) else dict(found)
        for name, found in given.items()
    }
    reached = set(keys)
    for _ in range(n_anchors):
        images: set[int] = set()
        for name, found in given.items():
            table = known[name]
            if isinstance(found, int):
                images |= {value + found for value in reached}
                continue
            if callable(found):
                table |= {v: _called(found, v, name) for v in reached if v not in table}
            missing = sorted(reached - table.keys())
            if missing:
                more = f" and {len(missing) - 1} more, to {missing[-1]}" if missing[1:] else ""
                raise InputError(
                    f"the map of {name} says nothing of {missing[0]}{more}: expected an image for "
                    f"every value that a key can become, here {min(reached)} to {max(reached)}"
                )
            images |= {table[value] for value in reached}
        reached = images
    return tuple(
        found if isinstance(found, int) else tuple(sorted(known[name].items()))
        for name, found in given.items()
    )


def _called(function: Callable[[int], int], value: int, name: str) -> int:
    try:
        image = function(value)
    except Exception as error:
        told = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(
            f"the map of {name} fails at {value} ({told}): expected a function that gives a whole "
            "number for every value that a key can become"
        ) from error
    if not is_whole(image):
        raise InputError(
            f"the map of {name} turns {value} into {in_line(image)}: expected a whole number"
        )
    return _bounded(image, name)


def applied(found: Map, values: Integers) -> Integers:
    """Return the images of the values.

    >>> applied(((1, 9), (2, 7)), np.array([2, 1, 2])).tolist()
    [7, 9, 7]
    """
    if isinstance(found, int):
        return values + found
    table = np.array(found, dtype=np.int64)
    return table[np.searchsorted(table[:, 0], values), 1]


@dataclass(frozen=True, slots=True)
class Tables:
    """Every pair of a task and its answers, one row a pair and one column a key."""

    pairs: tuple[Pair, ...]
    keys: Integers
    composed: Integers
    """[n_pairs, n_keys], the maps of the pair in order, first anchor first."""
    targets: Integers
    """[n_pairs, n_keys], the designated answer: `composed` but for the overridden pairs."""
    mirrored: Integers
    """[n_pairs, n_keys], of an unseen pair the target of the reversed pair where that one is seen
    and answers otherwise; -1 elsewhere."""
    seen: tuple[int, ...]
    """Rows of the pairs in training."""
    unseen: tuple[int, ...]
    """Rows of the pairs held out, in the task's order, those of the probe last."""
    probe: tuple[int, ...]
    mirror: tuple[int, ...]
    """Rows of the seen pairs that are an unseen pair reversed."""

    def row(self, pair: Pair) -> int:
        """Return the row of a pair."""
        return self.pairs.index(pair)

    @property
    def mirrored_rows(self) -> NDArray[np.bool_]:
        """Whether a pair has a mirrored answer at any key, [n_pairs]."""
        return np.any(self.mirrored >= 0, axis=1)


def n_pairs(anchors: Sequence[int], length: int) -> int:
    """Return how many pairs there are; more than can be kept track of is an error."""
    count = len(anchors) ** length
    if count > _MOST_PAIRS:
        raise InputError(
            f"{len(anchors)} anchors, {length} in a row, make {count} pairs: expected at most "
            f"{_MOST_PAIRS}; use fewer anchors"
        )
    return count


def tables(task: AnchorTask) -> Tables:
    """Return every pair of the task and its answers; what is no anchor task is an error."""
    from initrate.tasks._anchor import AnchorTask

    if not isinstance(task, AnchorTask):
        raise InputError(
            f"the task is {in_line(task)}: expected an AnchorTask, as variant('34-wrong') gives it"
        )
    return _tables(task)


@lru_cache(maxsize=64)
def _tables(task: AnchorTask) -> Tables:
    """Tasks are immutable, so this pure function remembers what it computed."""
    pairs = tuple(itertools.product(task.anchors, repeat=task.n_anchors))
    row = {pair: index for index, pair in enumerate(pairs)}
    keys = np.arange(task.key_low, task.key_high + 1, dtype=np.int64)
    single = dict(zip(task.anchors, task.plain_maps, strict=True))
    composed = np.empty((len(pairs), len(keys)), dtype=np.int64)
    for index, pair in enumerate(pairs):
        values = keys
        for anchor in pair:
            values = applied(single[anchor], values)
        composed[index] = values
    targets = composed.copy()
    for pair, found in task.overridden.items():
        targets[row[pair]] = applied(found, keys)
    unseen = tuple(row[pair] for pair in (*task.unseen, *task.probe))
    held_out = set(unseen)
    mirrored = np.full_like(composed, -1)
    mirror: list[int] = []
    for index in unseen:
        reverse = row[pairs[index][::-1]]
        if reverse not in held_out:
            mirrored[index] = np.where(targets[reverse] != composed[index], targets[reverse], -1)
            mirror.append(reverse)
    for array in (keys, composed, targets, mirrored):
        array.flags.writeable = False
    return Tables(
        pairs=pairs,
        keys=keys,
        composed=composed,
        targets=targets,
        mirrored=mirrored,
        seen=tuple(index for index in range(len(pairs)) if index not in held_out),
        unseen=unseen,
        probe=tuple(row[pair] for pair in task.probe),
        mirror=tuple(mirror),
    )


def described(answers: Integers, keys: Integers) -> str:
    """Return an answer as a formula of the key x, or "table" where it is neither shift nor mirror.

    >>> keys = np.array([20, 21])
    >>> described(keys - 10, keys), described(50 - keys, keys), described(2 * keys, keys)
    ('x-10', '50-x', 'table')
    """
    shift = answers - keys
    if (shift == shift[0]).all():
        return f"x{shift[0]:+d}" if shift[0] else "x"
    total = answers + keys
    return f"{total[0]}-x" if (total == total[0]).all() else "table"

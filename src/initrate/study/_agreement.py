"""How far labels change with the execution plan, beside how far they change with the seed."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from initrate.errors import InputError
from initrate.study._store import Store


@dataclass(frozen=True, slots=True)
class Agreement:
    """Shares of pairs of runs whose labels differ: between two plans, and between two seeds."""

    n_cells: int
    """Cells that both studies have trained."""
    changed: int
    """Of these: how many have another label in the other study."""
    n_seed_pairs: int
    """Pairs of runs of the first study that differ in the seed alone."""
    changed_between_seeds: int

    @property
    def share(self) -> float:
        """The share of cells whose label the plan changed."""
        return self.changed / self.n_cells

    @property
    def share_between_seeds(self) -> float | None:
        """The share of pairs whose label the seed changed; None where there is one seed."""
        return self.changed_between_seeds / self.n_seed_pairs if self.n_seed_pairs else None


def agreement(first: Store, second: Store) -> Agreement:
    """Return how far the labels of two studies agree in the cells that they share.

    The same cells trained under another execution plan (threads, width of buckets) differ in the
    last bits, which training amplifies: the share of labels that change is to be read beside the
    share that changes from seed to seed.
    """
    labels = [{row["cell"]: row["label"] for row in _rows(store)} for store in (first, second)]
    shared = [cell for cell in labels[0] if cell in labels[1]]
    if not shared:
        raise InputError("the two studies share no trained cell: train the same cells in both")
    changed = sum(labels[0][cell] != labels[1][cell] for cell in shared)
    axes = list(first.config.all_axes)
    points: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in _rows(first):
        if row["cell"] in labels[1]:
            points[tuple(repr(row[axis]) for axis in axes)].append(str(row["label"]))
    pairs = [pair for point in points.values() for pair in itertools.combinations(point, 2)]
    return Agreement(len(shared), changed, len(pairs), sum(a != b for a, b in pairs))


def _rows(store: Store) -> Iterable[dict[str, object]]:
    return store.cells().to_dicts()

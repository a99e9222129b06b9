"""Solvers without a network: what fits, tables and neighbours answer on the unseen pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from initrate.tasks._checks import named
from initrate.tasks._maps import Pair, Tables, tables
from initrate.tasks._task import Integers

if TYPE_CHECKING:
    from initrate.tasks._anchor import AnchorTask

Floats = NDArray[np.float64]
Answers = tuple[Integers, Floats]
"""Of one pair: answers [n_answers, n_keys] and how likely each is, by lot among equally good ones;
no rows where there is no answer."""

BASELINES: dict[str, str] = {
    "ordered_additive": (
        "least squares: an effect of the key, one of each anchor as first and one as second, "
        "rounded"
    ),
    "tied_additive": (
        "least squares: an effect of the key and one of each anchor, whatever its place, rounded"
    ),
    "unordered_lookup": "the answer of a seen pair of the same anchors in any order",
    "nearest_neighbour": "the answer of the seen pairs with the same key and most anchors in place",
}
"""The baselines: name and a line on each."""


def baselines(task: AnchorTask) -> list[dict[str, Any]]:
    """Return what solvers without a network answer: a row a baseline and unseen pair.

    `composed` and `mirrored` are shares over the keys (`mirrored` None where the pair has no such
    answer), `seen_accuracy` is over all keys and seen pairs; among equally good answers the choice
    is by lot, so that its share is a fraction. `answer_shift` is the answer minus the key where
    that is one number. Without an unseen pair there is a row a baseline, its `pair` None.

    >>> from initrate.tasks import variant
    >>> [(row["baseline"], row["mirrored"]) for row in baselines(variant("34-wrong"))][1:3]
    [('tied_additive', 0.0), ('unordered_lookup', 1.0)]
    """
    known = tables(task)
    solvers: dict[str, Callable[[int], Answers]] = {
        "ordered_additive": _additive(known, _ordered_features(task, known)),
        "tied_additive": _additive(known, _tied_features(task, known)),
        "unordered_lookup": _lookup(known),
        "nearest_neighbour": _nearest(known),
    }
    rows: list[dict[str, Any]] = []
    for name, solver in solvers.items():
        seen = [_share(solver(row), known.targets[row]) for row in known.seen]
        common: dict[str, Any] = {
            "baseline": name,
            "description": BASELINES[name],
            "seen_accuracy": float(np.mean(seen)),
        }
        if not known.unseen:
            empty = dict.fromkeys(["pair", "composed", "mirrored", "answer_shift"])
            rows.append(common | empty)
        for row in known.unseen:
            answers = solver(row)
            rows.append(
                common
                | {
                    "pair": named(known.pairs[row]),
                    "composed": _share(answers, known.composed[row]),
                    "mirrored": _share(answers, known.mirrored[row])
                    if known.mirrored_rows[row]
                    else None,
                    "answer_shift": _shift(answers, known.keys),
                }
            )
    return rows


def _share(answers: Answers, wanted: Integers) -> float:
    """Return how often the answers are the wanted ones, mean over the keys."""
    values, likely = answers
    return float((likely * (values == wanted)).sum() / len(wanted))


def _shift(answers: Answers, keys: Integers) -> int | None:
    values, likely = answers
    shifts = np.unique((values - keys)[likely > 0])
    return int(shifts[0]) if len(shifts) == 1 else None


def _ordered_features(task: AnchorTask, known: Tables) -> Floats:
    pairs = np.array(known.pairs)
    places = [pairs[:, [place]] == np.array(task.anchors) for place in range(task.n_anchors)]
    return np.concatenate([np.ones((len(pairs), 1)), *places], axis=1).astype(np.float64)


def _tied_features(task: AnchorTask, known: Tables) -> Floats:
    pairs = np.array(known.pairs)
    counts = (pairs[:, :, None] == np.array(task.anchors)).sum(axis=1)
    return np.concatenate([np.ones((len(pairs), 1)), counts], axis=1).astype(np.float64)


def _additive(known: Tables, features: Floats) -> Callable[[int], Answers]:
    """Fit answer = effect of the key + effects of the anchors by least squares.

    Every seen pair comes with every key, so that the two parts are orthogonal: key effects are the
    means over pairs, and the anchors' effects are fitted to the means over keys.
    """
    seen = list(known.seen)
    answers = known.targets[seen].astype(np.float64)
    effects, *_ = np.linalg.lstsq(features[seen], answers.mean(axis=1), rcond=None)
    of_key = answers.mean(axis=0) - answers.mean()

    def solve(row: int) -> Answers:
        # Rounded first, so that a half is one whatever the last bits of the solver; both of its
        # neighbours are equally good then.
        fitted = np.round(features[row] @ effects + of_key, 6)
        both = np.stack([np.ceil(fitted - 0.5), np.floor(fitted + 0.5)]).astype(np.int64)
        return both, np.full(both.shape, 0.5)

    return solve


def _most_frequent(rows: Sequence[int], known: Tables) -> Answers:
    """Return the answers that most of these pairs give, key by key."""
    values = known.targets[list(rows)]
    if not len(values):
        return values, np.empty(values.shape)
    votes = (values[:, None] == values[None]).sum(axis=1)
    # An answer that n pairs give stands there n times.
    likely = np.where(votes == votes.max(axis=0), 1 / votes, 0)
    return values, likely / likely.sum(axis=0)


def _lookup(known: Tables) -> Callable[[int], Answers]:
    by_anchors: dict[Pair, list[int]] = {}
    for row in known.seen:
        by_anchors.setdefault(tuple(sorted(known.pairs[row])), []).append(row)

    def solve(row: int) -> Answers:
        return _most_frequent(by_anchors.get(tuple(sorted(known.pairs[row])), []), known)

    return solve


def _nearest(known: Tables) -> Callable[[int], Answers]:
    pairs = np.array(known.pairs)
    seen = np.array(known.seen)

    def solve(row: int) -> Answers:
        # Another key is one more difference, so that the nearest always share the key.
        distance = (pairs[seen] != pairs[row]).sum(axis=1)
        return _most_frequent(seen[distance == distance.min()].tolist(), known)

    return solve

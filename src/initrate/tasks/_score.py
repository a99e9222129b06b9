"""Scores: what a model's answers to the splits come to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from initrate.errors import InputError
from initrate.tasks._checks import named
from initrate.tasks._maps import Tables, tables
from initrate.tasks._task import Integers, Score, Split

if TYPE_CHECKING:
    from initrate.tasks._anchor import AnchorTask

Number = float | int | None
Flags = NDArray[np.bool_]

_BY_PAIR = ("unseen", "unseen_test_keys", "mirror")
"""The splits whose counts by key are kept for every pair; the others' for all pairs together."""


def score(task: AnchorTask, splits: Sequence[Split], predictions: Sequence[Integers]) -> Score:
    """Return the score of one model's predictions, one array [n_sequences] a split.

    Counts are kept by pair and position for every split, by key as well for each pair of the
    unseen and mirror splits; rows with pair "all" are of all pairs of the split together.
    """
    plain = scalars(task, splits, predictions)
    counts: list[Mapping[str, object]] = []
    shifts: list[Mapping[str, object]] = []
    for split, answers in zip(splits, predictions, strict=True):
        counts += _counts(task, split, answers)
        if split.name in _BY_PAIR:
            shifts += _shifts(task, split, answers)
    return Score(scalars=plain, counts=counts, shifts=shifts)


def scalars(
    task: AnchorTask, splits: Sequence[Split], predictions: Sequence[Integers]
) -> dict[str, Number]:
    """Return the plain numbers of a score; None where the task has no such answer.

    All numbers of the unseen part are of the primary pair (`task.primary`) with training-type
    keys, but those named by test keys or by the probe.
    """
    if len(splits) != len(predictions):
        raise InputError(f"found {len(predictions)} arrays of predictions for {len(splits)} splits")
    for split, answers in zip(splits, predictions, strict=True):
        if np.shape(answers) != split.targets.shape:
            raise InputError(
                f"predictions of split {split.name} have shape {np.shape(answers)}: expected "
                f"{split.targets.shape}"
            )
    answered = {
        split.name: (split, np.asarray(answers))
        for split, answers in zip(splits, predictions, strict=True)
    }
    found: dict[str, Number] = {
        f"{name}_accuracy": _share(answered[split][1] == answered[split][0].targets)
        if split in answered
        else None
        for name, split in [
            ("training", "training"),
            ("seen", "seen"),
            ("seen_training_key", "seen_training_keys"),
        ]
    }
    return found | _unseen_scalars(task, answered)


def _share(right: Flags) -> float | None:
    return float(right.mean()) if right.size else None


def _unseen_scalars(
    task: AnchorTask, answered: Mapping[str, tuple[Split, Integers]]
) -> dict[str, Number]:
    known = tables(task)
    found: dict[str, Number] = {
        "inferential_accuracy": None,
        "inferential_accuracy_last_position": None,
        "inferential_accuracy_test_keys": None,
        "symmetric_accuracy": None,
        "probe_accuracy": None,
        "commutes": None,
        "n_unseen": 0,
        "unseen_composed": None,
        "unseen_mirrored": None,
        "unseen_top_shift": None,
        "unseen_top_shift_n": None,
        "probe_n": 0,
        "probe_composed": None,
    }
    if "unseen" not in answered:
        return found
    split, answers = answered["unseen"]
    composed = answers == split.candidates["composed"]
    probe = np.isin(split.columns["pair"], known.probe)
    if known.probe:
        found["probe_n"] = int(probe.sum())
        found["probe_composed"] = int(composed[probe].sum())
        found["probe_accuracy"] = _share(composed[probe])
    if task.primary is None:
        return found
    primary = known.row(task.primary)
    chosen = split.columns["pair"] == primary
    composed = composed[chosen]
    mirrored = (answers == split.candidates["mirrored"])[chosen]
    last = split.columns["position"][chosen] == task.n_positions - 1
    found["n_unseen"] = int(chosen.sum())
    found["unseen_composed"] = int(composed.sum())
    found["inferential_accuracy"] = _share(composed)
    found["inferential_accuracy_last_position"] = _share(composed[last])
    if known.mirrored_rows[primary]:
        found["unseen_mirrored"] = int(mirrored.sum())
        found["symmetric_accuracy"] = _share(mirrored)
    other = ~(composed | mirrored)
    shift = (answers - split.columns["key"])[chosen][other]
    if shift.size:
        values, n = np.unique(shift, return_counts=True)
        top = int(n.argmax())
        found["unseen_top_shift"], found["unseen_top_shift_n"] = int(values[top]), int(n[top])
    if "unseen_test_keys" in answered:
        test, test_answers = answered["unseen_test_keys"]
        rows = test.columns["pair"] == primary
        found["inferential_accuracy_test_keys"] = _share(
            (test_answers == test.candidates["composed"])[rows]
        )
    found["commutes"] = _commutes(known, primary, answered)
    return found


def _commutes(
    known: Tables, primary: int, answered: Mapping[str, tuple[Split, Integers]]
) -> float | None:
    """Return the share of equal answers on the primary pair and its reverse, in the same
    surroundings; None where the reverse is the pair itself."""
    reverse = known.row(known.pairs[primary][::-1])
    if reverse == primary:
        return None
    split, answers = answered["unseen"]
    forward = answers[split.columns["pair"] == primary]
    if reverse not in known.unseen:
        split, answers = answered["mirror"]
    backward = answers[split.columns["pair"] == reverse]
    return _share(forward == backward)


def _counts(task: AnchorTask, split: Split, answers: Integers) -> Iterator[Mapping[str, object]]:
    known = tables(task)
    rows, slot = np.unique(split.columns["pair"], return_inverse=True)
    flags = (
        answers == split.targets,
        answers == split.candidates["composed"],
        answers == split.candidates["mirrored"],
    )
    has_mirrored = known.mirrored_rows

    def numbers(index: Integers, size: int) -> Integers:
        """Return n, correct, composed, mirrored by pair and index: [4, n_rows, size]."""
        cell, n_cells = slot * size + index, len(rows) * size
        n = np.bincount(cell, minlength=n_cells)
        hits = [np.bincount(cell[flag], minlength=n_cells) for flag in flags]
        return np.stack([n, *hits]).reshape(4, len(rows), size)

    def entries(
        row: int | None, by_position: Integers, by_key: Integers | None
    ) -> Iterator[Mapping[str, object]]:
        cells: list[tuple[str, int | None, Integers]] = [("all", None, by_position.sum(axis=1))]
        if by_key is not None:
            for index in np.flatnonzero(by_key[0]).tolist():
                cells.append(("key", task.key_low + index, by_key[:, index]))
        for index in np.flatnonzero(by_position[0]).tolist():
            cells.append(("position", index, by_position[:, index]))
        if by_position[0, -1]:
            cells.append(("last_position", task.n_positions - 1, by_position[:, -1]))
        for by, index, counted in cells:
            n, correct, composed, mirrored = counted.tolist()
            yield {
                "split": split.name,
                "pair": "all" if row is None else named(known.pairs[row]),
                "by": by,
                "index": index,
                "n": n,
                "correct": correct,
                "composed": composed,
                "mirrored": mirrored if row is not None and has_mirrored[row] else None,
            }

    by_position = numbers(split.columns["position"], task.n_positions)
    by_key = numbers(split.columns["key"] - task.key_low, len(known.keys))
    yield from entries(None, by_position.sum(axis=1), by_key.sum(axis=1))
    for index, row in enumerate(rows.tolist()):
        of_key = by_key[:, index] if split.name in _BY_PAIR else None
        yield from entries(row, by_position[:, index], of_key)


def _shifts(task: AnchorTask, split: Split, answers: Integers) -> Iterator[Mapping[str, object]]:
    known = tables(task)
    shift = answers - split.columns["key"]
    for row in np.unique(split.columns["pair"]).tolist():
        values, n = np.unique(shift[split.columns["pair"] == row], return_counts=True)
        for value, count in zip(values.tolist(), n.tolist(), strict=True):
            yield {
                "split": split.name,
                "pair": named(known.pairs[row]),
                "shift": value,
                "n": count,
            }

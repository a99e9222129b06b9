"""The named variants of the anchor task, and what the unseen part of each is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from initrate.errors import InputError, in_line, unknown
from initrate.tasks._anchor import AnchorTask
from initrate.tasks._baselines import baselines
from initrate.tasks._checks import named
from initrate.tasks._maps import described, tables

VARIANTS: Mapping[str, str] = {
    "34-wrong": (
        "the main set-up of arXiv 2405.05409: pair (3,4) is seen with the answer x-6, which no "
        "composition gives; (4,3) is unseen, composed x-10, mirrored x-6"
    ),
    "without-34": (
        "Appendix E of arXiv 2405.05409: (4,3) and (3,4) are unseen, composed x-10; there is no "
        "mirrored answer, whether the two agree is measured"
    ),
    "34-wrong+probe": (
        "34-wrong with the pairs (1,2) and (2,1) unseen as well, composed x+6: a model that looks "
        "up unordered pairs has no answer there, one that composes has"
    ),
    "nine-anchors": (
        "nine anchors with shifts -4 to +4, all pairs composed as in the code of arXiv "
        "2501.08537; (4,3) and (3,4) are unseen here, composed x-3, no mirrored answer"
    ),
    "random-groups": (
        "the data-complexity study of arXiv 2501.08537: random_groups (0, 1, 5; here 1) unordered "
        "pairs have symmetric answers that no composition gives; no pair is unseen"
    ),
    "non-commuting": (
        "the paper's shifts with anchor 3 a reflection x -> 119-x, first anchor first; (4,3) is "
        "unseen, composed 127-x, mirrored 111-x, with no exception in training"
    ),
}
"""The built-in variants: name and a line on each."""

TASKS = tuple(VARIANTS)
"""The names of the built-in variants."""


def _reflection(x: int) -> int:
    return 119 - x


_CHANGES: Mapping[str, Mapping[str, object]] = {
    "34-wrong": {"overrides": {"3,4": -6}},
    "without-34": {"unseen": ((4, 3), (3, 4)), "overrides": ()},
    "34-wrong+probe": {"overrides": {"3,4": -6}, "probe": ((1, 2), (2, 1))},
    "nine-anchors": {
        "anchors": (1, 2, 3, 4, 5, 6, 7, 8, 9),
        "maps": (-4, -3, -2, -1, 0, 1, 2, 3, 4),
        "unseen": ((4, 3), (3, 4)),
        "overrides": (),
    },
    "random-groups": {"unseen": (), "overrides": (), "random_groups": 1},
    "non-commuting": {"maps": (5, 1, _reflection, -8), "overrides": ()},
}


def variant(name: str, **changes: object) -> AnchorTask:
    """Return the named variant, with any field of the task changed.

    >>> variant("without-34", vocabulary=201).unseen
    ((4, 3), (3, 4))
    """
    if not isinstance(name, str) or name not in _CHANGES:
        raise unknown("task", name, TASKS)
    return AnchorTask.from_dict({**_CHANGES[name], "variant": name, **changes})


def task_from_dict(given: Mapping[str, object]) -> AnchorTask:
    """Return the task of a mapping: a built-in variant by name, with the fields that differ.

    A task with anchors and maps of its own is called "own", or "own-" and more; only a mapping
    that says all fields, as `to_dict` does, may have any name.

    >>> task_from_dict({"variant": "34-wrong", "pool": 20000}).pool
    20000
    """
    if not isinstance(given, Mapping):
        raise InputError(
            f"the task is {in_line(given)}: expected a table, as in {{'variant': '34-wrong'}}"
        )
    name = given.get("variant")
    if name is None:
        raise InputError(f"the task has no variant: expected one of {', '.join(TASKS)}")
    own = isinstance(name, str) and (name == "own" or name.startswith("own-"))
    if own and not {"anchors", "maps"} <= given.keys():
        raise InputError(f"task {name!r} lacks its anchors or its maps: give both")
    if not isinstance(name, str):
        raise unknown("task", name, [*TASKS, "own"])
    if own or (name not in TASKS and {*task_fields()} - {"pool"} <= given.keys()):
        return AnchorTask.from_dict(given)
    if name not in TASKS:
        raise unknown("task", name, [*TASKS, "own"])
    return AnchorTask.from_dict({**_CHANGES[name], **given})


def unseen_table(names: Iterable[str] = TASKS) -> list[dict[str, Any]]:
    """Return what the unseen part of each variant is: a row a variant and unseen pair.

    >>> [row["composed"] for row in unseen_table(["34-wrong+probe"])]
    ['x-10', 'x+6', 'x+6']
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InputError(f"the tasks are {in_line(names)}: expected a list of names")
    return [row for name in names for row in unseen_rows(variant(name))]


def unseen_rows(task: AnchorTask) -> list[dict[str, Any]]:
    """Return what the unseen part of a task is: a row an unseen pair.

    `lookup_composes` is True where a look-up of unordered pairs has the composed answer too.
    `reverse` says what became of the reversed pair in training; `mirrored` is None where there is
    no mirrored answer. A task without an unseen pair has one row, its `pair` None.
    """
    known = tables(task)
    common: dict[str, Any] = {
        "variant": task.variant,
        "n_pairs": len(known.pairs),
        "n_seen": len(known.seen),
        "overridden": ", ".join(named(pair) for pair in sorted(task.overridden)),
    }
    if not known.unseen:
        empty = dict.fromkeys(
            ["pair", "role", "composed", "reverse", "mirrored", "lookup_composes"]
        )
        return [common | empty]
    looked_up = {
        row["pair"]: row["composed"]
        for row in baselines(task)
        if row["baseline"] == "unordered_lookup"
    }
    rows: list[dict[str, Any]] = []
    for row in known.unseen:
        pair = known.pairs[row]
        reverse = pair[::-1]
        if reverse == pair:
            became = "the same pair"
        elif known.row(reverse) in known.unseen:
            became = "unseen"
        else:
            answers = known.targets[known.row(reverse)]
            became = f"seen, {described(answers, known.keys)}"
        at = known.mirrored[row] >= 0
        rows.append(
            common
            | {
                "pair": named(pair),
                "role": "primary"
                if pair == task.primary
                else "probe"
                if pair in task.probe
                else "unseen",
                "composed": described(known.composed[row], known.keys),
                "reverse": became,
                "mirrored": described(known.mirrored[row][at], known.keys[at])
                if at.any()
                else None,
                "lookup_composes": looked_up[named(pair)] == 1,
            }
        )
    return rows


def lookup_note(task: AnchorTask) -> str | None:
    """Return a line where the primary pair cannot tell composing from looking up, else None.

    >>> lookup_note(variant("34-wrong")) is None
    True
    """
    primary = next(iter(unseen_rows(task)))
    if not primary["lookup_composes"]:
        return None
    return (
        f"task {task.variant!r}: a look-up of unordered pairs has the composed answer of "
        f"({primary['pair']}) too, so that it cannot be told from composing; hold out the "
        f"reversed pair as well"
    )


def task_fields() -> tuple[str, ...]:
    """Return the names of a task's fields, in order."""
    return tuple(field.name for field in fields(AnchorTask))

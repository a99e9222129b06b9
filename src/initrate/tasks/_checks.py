"""What a task must be: every check names what was found, what was expected and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from initrate.errors import InputError, in_line, whole_number
from initrate.tasks._maps import RANDOM_GROUPS, Pair, is_whole, n_pairs, tables, whole_of
from initrate.tasks._split import key_cells

if TYPE_CHECKING:
    from initrate.tasks._anchor import AnchorTask

_MOST_TOKENS = 65_536
_LONGEST = 4_096
_MOST_CELLS = 5_000_000


def whole(name: str, given: object, *, least: int, most: int = 10**9) -> int:
    """Return a whole number in the range, or say what was found.

    >>> whole("length", 9, least=2)
    9
    """
    whole_number(f"task {name}", given, least=least, most=most)
    return cast("int", given)


def pair_of(given: object, *, anchors: Sequence[int], n_anchors: int, what: str) -> Pair:
    """Return a pair given as a sequence of anchors or as text.

    >>> pair_of("4,3", anchors=(3, 4), n_anchors=2, what="held-out pair")
    (4, 3)
    """
    parts: list[object] = []
    if isinstance(given, str):
        parts = [whole_of(part) for part in given.split(",")]
    elif isinstance(given, Sequence):
        parts = [part if is_whole(part) else None for part in given]
    if len(parts) != n_anchors or any(part not in anchors for part in parts):
        shown = in_line(given, most=40)
        known = ", ".join(map(str, anchors))
        raise InputError(
            f"{what} {shown} is not one of the task's pairs: expected {n_anchors} of the "
            f"anchors {known} in order"
        )
    return tuple(int(str(part)) for part in parts)


def pairs_of(
    given: object, *, anchors: Sequence[int], n_anchors: int, what: str
) -> tuple[Pair, ...]:
    """Return pairs, each one once."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InputError(f"the {what}s are {in_line(given)}: expected a list of pairs")
    found = tuple(pair_of(one, anchors=anchors, n_anchors=n_anchors, what=what) for one in given)
    for pair in found:
        if found.count(pair) > 1:
            raise InputError(f"{what} {named(pair)} stands twice: expected it once")
    return found


def override_items(given: object) -> list[tuple[object, object]]:
    """Return the (pair, answer) entries of overrides given as a mapping or as a list."""
    if isinstance(given, Mapping):
        return list(given.items())
    if isinstance(given, Sequence) and not isinstance(given, str):
        entries = [
            list(one) if isinstance(one, Sequence) and not isinstance(one, str) else []
            for one in given
        ]
        if all(len(entry) == 2 for entry in entries):
            return [(entry[0], entry[1]) for entry in entries]
    raise InputError(
        f"the overrides are {in_line(given)}: expected a pair and its answer each, as in "
        '{"3,4": -6}'
    )


def named(pair: Pair) -> str:
    """Return the name of a pair in messages and tables.

    >>> named((4, 3))
    '4,3'
    """
    return ",".join(map(str, pair))


def check_tokens(task: AnchorTask) -> None:
    """Check that sequences fit: length, ranges, anchors apart from keys and noise."""
    if task.length < task.n_anchors + 1:
        raise InputError(
            f"task length is {task.length}: a key and {task.n_anchors} anchors need at least "
            f"{task.n_anchors + 1}"
        )
    if task.length > _LONGEST or task.vocabulary > _MOST_TOKENS:
        raise InputError(
            f"task length {task.length}, vocabulary {task.vocabulary}: expected at most "
            f"{_LONGEST} and {_MOST_TOKENS}"
        )
    for name, low, high in [
        ("key", task.key_low, task.key_high),
        ("noise", task.noise_low, task.noise_high),
    ]:
        if low > high:
            raise InputError(
                f"the {name} range is {low}-{high}: expected {name}_low <= {name}_high"
            )
        if high >= task.vocabulary:
            raise InputError(
                f"the {name} range {low}-{high} leaves the vocabulary of {task.vocabulary}: "
                f"raise vocabulary to {high + 1} or lower {name}_high"
            )
        for anchor in task.anchors:
            if low <= anchor <= high:
                raise InputError(
                    f"anchor {anchor} lies in the {name} range {low}-{high}: expected anchors "
                    "apart from keys and noise"
                )
    for anchor in task.anchors:
        if anchor >= task.vocabulary:
            raise InputError(
                f"anchor {anchor} leaves the vocabulary of {task.vocabulary}: raise vocabulary"
            )


def check_size(task: AnchorTask) -> None:
    """Check that every (pair, key, position) can be asked once."""
    n_keys = task.key_high - task.key_low + 1
    cells = n_pairs(task.anchors, task.n_anchors) * n_keys * task.n_positions
    if cells > _MOST_CELLS:
        raise InputError(
            f"{n_keys} keys, {task.n_positions} positions and {task.n_anchors} of "
            f"{len(task.anchors)} anchors make {cells} cases: expected at most {_MOST_CELLS}"
        )


def check_groups(task: AnchorTask) -> None:
    """Check that the random groups can be had."""
    if not task.random_groups:
        return
    if task.n_anchors != 2 or not {1, 2, 3, 4} <= set(task.anchors):
        raise InputError(
            f"task random_groups is {task.random_groups}: these need n_anchors = 2 and the "
            "anchors 1, 2, 3, 4"
        )
    if task.random_groups > len(RANDOM_GROUPS):
        raise InputError(
            f"task random_groups is {task.random_groups}: expected at most {len(RANDOM_GROUPS)}"
        )


def check_pairs(task: AnchorTask) -> None:
    """Check that no pair has two parts to play and that some pair is left for training."""
    parts: dict[Pair, str] = {}
    roles = [
        ("unseen", task.unseen),
        ("in the probe", task.probe),
        ("overridden", tuple(pair for pair, _ in task.plain_overrides)),
        ("in a random group", task.group_pairs),
    ]
    for role, pairs in roles:
        for pair in pairs:
            if pair in parts:
                raise InputError(
                    f"pair {named(pair)} is {parts[pair]} and {role}: expected one of them"
                )
            parts[pair] = role
    count = n_pairs(task.anchors, task.n_anchors)
    if len(task.unseen) + len(task.probe) >= count:
        raise InputError(f"all {count} pairs are held out: expected at least one in training")


def check_targets(task: AnchorTask) -> None:
    """Check that every designated answer is a token."""
    known = tables(task)
    for pair, answers in zip(known.pairs, known.targets, strict=True):
        outside = (answers < 0) | (answers >= task.vocabulary)
        if not outside.any():
            continue
        # Shifts, tables and functions alike: the key it happens at says it best.
        key, answer = int(known.keys[outside][-1]), int(answers[outside][-1])
        least = int(answers.max()) + 1
        cure = "raise key_low" if answer < 0 else f"lower key_high or raise vocabulary to {least}"
        raise InputError(
            f"key {key} with anchors {named(pair)} has the answer {answer}, outside the vocabulary "
            f"of {task.vocabulary}: {cure}"
        )


def check_split(task: AnchorTask) -> None:
    """Check that every position has a training key and that test keys exist."""
    training, test = key_cells(task)
    rule = f"split modulus {task.modulus} over {task.n_positions} positions"
    if not training.counts.all():
        position = int(training.counts.argmin())
        raise InputError(
            f"{rule} leaves no training key for position {position}: widen the key range or "
            "choose another split_modulus"
        )
    if not test.n_cells:
        raise InputError(
            f"{rule} leaves no test key in {task.key_low}-{task.key_high}: widen the key range or "
            "choose another split_modulus"
        )

"""Rows of options in which every pair of values occurs: all combinations, two at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product

Pair = tuple[tuple[str, object], tuple[str, object]]


def all_pairs(options: Mapping[str, Sequence[object]]) -> set[Pair]:
    """Return every pair of values of two different options."""
    return {
        ((a, x), (b, y))
        for a, b in combinations(options, 2)
        for x, y in product(options[a], options[b])
    }


def pairs_of(row: Mapping[str, object]) -> set[Pair]:
    """Return the pairs that one row covers."""
    return set(combinations(row.items(), 2))


def pairwise(options: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    """Return few rows that cover all pairs: each starts at an open pair and grows greedily."""
    left = dict.fromkeys(
        ((a, x), (b, y))
        for a, b in combinations(options, 2)
        for x, y in product(options[a], options[b])
    )
    rows: list[dict[str, object]] = []
    while left:
        chosen = dict(next(iter(left)))
        for name in options:
            if name not in chosen:
                gains = [
                    sum(pair in left for pair in pairs_of(_ordered(options, chosen, name, value)))
                    for value in options[name]
                ]
                best = max(
                    range(len(gains)), key=lambda i: (gains[i], -((i + len(rows)) % len(gains)))
                )
                chosen[name] = options[name][best]
        row = {name: chosen[name] for name in options}
        for pair in pairs_of(row):
            left.pop(pair, None)
        rows.append(row)
    return rows


def _ordered(
    options: Mapping[str, Sequence[object]], chosen: Mapping[str, object], name: str, value: object
) -> dict[str, object]:
    known = {**chosen, name: value}
    return {option: known[option] for option in options if option in known}

"""The long form of `initrate bench`: every size, many rounds, and a check of what is promised.

make bench ARGS="--sizes laptop paper-2 --seconds 300"
"""

from __future__ import annotations

import json
import sys
from typing import Annotated

import tyro

from initrate.bench import HEAD, OURS, SIZES, Comparison, measure, notes, table
from initrate.errors import InputError

PROMISED: dict[str, tuple[float, float]] = {
    "laptop": (2.0, 0.85),
    "d128": (2.0, 1.0),
    "paper-2": (2.0, 1.4),
    "paper-7": (1.3, 0.95),
}
"""Size -> how many times as fast as the best peer, and the utilisation."""


def main(
    sizes: tuple[str, ...] = tuple(SIZES),
    seconds: float = 120.0,
    rounds: int = 7,
    threads: int | None = None,
    check: bool = False,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> int:
    """Print how fast each engine trains the models of each size.

    Args:
        sizes: The sizes to measure.
        seconds: Time for the rounds of each size.
        rounds: The least number of rounds, whatever time they take.
        threads: Threads of each engine; all cores where not given.
        check: Exit with 1 where a figure is below what the project promises.
        as_json: Print one JSON object instead of the table.
    """
    try:
        found = measure(
            sizes,
            seconds=seconds,
            rounds=rounds,
            threads=threads,
            tell=lambda line: print(line, file=sys.stderr, flush=True),
        )
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if as_json:
        print(json.dumps(found.to_dict(), indent=2))
    else:
        print("\n".join(" | ".join(row) for row in (HEAD, *table(found))), *notes(found), sep="\n")
    broken = [line for size in sizes for line in below(found, size)]
    for line in broken:
        print(line, file=sys.stderr)
    return int(check and bool(broken))


def below(found: Comparison, size: str) -> list[str]:
    """Return a line for each figure of this size that is below what is promised."""
    ours, best = found.row(size, OURS), found.best_peer(size)
    if size not in PROMISED or ours is None or best is None or best.relative_time is None:
        return []
    reached = {
        "times the best peer": best.relative_time.median,
        "utilisation": ours.utilisation.median,
    }
    return [
        f"{size}: {name} is {value:.2f}, promised {least:.2f}"
        for (name, value), least in zip(reached.items(), PROMISED[size], strict=True)
        if value < least
    ]


if __name__ == "__main__":
    sys.exit(tyro.cli(main))

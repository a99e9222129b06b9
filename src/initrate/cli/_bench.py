"""`initrate bench`: how fast this machine trains, beside other ways to train the same models."""

from __future__ import annotations

import json as json_module
from dataclasses import dataclass
from typing import Annotated

from initrate.cli._options import Switch, number, optional, whole
from initrate.cli._output import tell, write


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Measure how fast the engine trains, beside others that train the same models on this machine.

    The others are one module after another, eager and compiled, torch.func's vmap, and JAX. All
    start from the same weights and see the same sequences; after a warm-up they take turns, and
    the peak of a matrix product is measured before, between and after them.
    """

    sizes: Annotated[str, optional("NAME,NAME", unless="laptop")] = "laptop"
    """What to train: laptop, d128, paper-2, paper-4, paper-7, sequences."""
    engines: Annotated[str | None, optional("NAME,NAME", unless="all")] = None
    """What to train with: initrate, eager, compiled, vmap, jax."""
    seconds: Annotated[float | None, number("SECONDS"), optional("SECONDS", unless="20")] = None
    """Time for the rounds of each size, beside warm-up and compilation."""
    rounds: Annotated[int | None, whole(), optional("N", unless="3")] = None
    """The least number of rounds, whatever time they take."""
    threads: Annotated[int | None, whole(), optional("N", unless="all cores")] = None
    """Threads of each engine."""
    json: Switch = False
    """Write JSON in place of the table."""

    def run(self) -> int:
        """Measure, print the table and return the exit code."""
        from initrate.bench import ENGINES, HEAD, measure, notes, table

        found = measure(
            _names(self.sizes),
            list(ENGINES) if self.engines is None else _names(self.engines),
            seconds=20.0 if self.seconds is None else self.seconds,
            rounds=3 if self.rounds is None else self.rounds,
            threads=self.threads,
            tell=tell,
        )
        if self.json:
            write(json_module.dumps(found.to_dict(), indent=2, allow_nan=False))
            return 0

        from initrate.cli._wide_table import print_table

        print_table(HEAD, table(found))
        for line in notes(found):
            write(line)
        return 0


def _names(text: str) -> list[str]:
    """Return the names in a list with commas.

    >>> _names("laptop, d128")
    ['laptop', 'd128']
    """
    return [name.strip() for name in text.split(",")]

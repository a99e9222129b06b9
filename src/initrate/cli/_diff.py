"""`initrate diff`: two models tensor by tensor."""

from __future__ import annotations

import json as json_module
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import tyro

from initrate.cli._options import Switch
from initrate.cli._output import write
from initrate.cli._wide_table import print_table

if TYPE_CHECKING:
    from initrate.frameworks._target import Values


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    a: Values | None
    b: Values | None

    @property
    def verdict(self) -> str:
        if self.b is None:
            return "only in A"
        if self.a is None:
            return "only in B"
        if self.a.digest == self.b.digest:
            return "equal"
        if self.a.shape != self.b.shape:
            return "another shape"
        return "another type" if self.a.dtype != self.b.dtype else "differs"

    @property
    def ratio(self) -> float | None:
        """The std in B over that in A."""
        a, b = _std(self.a), _std(self.b)
        return None if not a or b is None else b / a

    def to_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "std_a": _std(self.a),
            "std_b": _std(self.b),
            "ratio": self.ratio,
            "equal": self.verdict == "equal",
            "verdict": self.verdict,
        }


def _std(values: Values | None) -> float | None:
    """Return the measured std, or None where nothing finite was measured."""
    if values is None or values.measured is None or not values.measured.size:
        return None
    return values.measured.std if math.isfinite(values.measured.std) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """Compare two models tensor by tensor: measured stds, their ratio, and whether bits are equal.

    A and B are model folders, safetensors files, or module:function. The exit code is 1 where
    they differ.
    """

    a: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="A")]
    """The first model."""
    b: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="B")]
    """The second model."""
    all: Switch = False
    """A row for every tensor, where else layers share one."""
    json: Switch = False
    """Write JSON, with every tensor, in place of the table."""

    def run(self) -> int:
        """Print the difference and return the exit code."""
        from initrate.frameworks._target import open_target

        first, second = open_target(self.a), open_target(self.b)
        rows = _rows(first.values(), second.values())
        differs = any(row.verdict != "equal" for row in rows)
        if self.json:
            text = {
                "schema": 1,
                "a": self.a,
                "b": self.b,
                "equal": not differs,
                "rows": [row.to_dict() for row in rows],
            }
            write(json_module.dumps(text, indent=2, allow_nan=False))
        else:
            self._print(rows)
        return 1 if differs else 0

    def _print(self, rows: list[_Row]) -> None:
        from initrate.rule._table import gathered, span

        named = [(row.name, [row]) for row in rows]
        if not self.all:
            keyed = ((row.name, (row.verdict, _shapes(row)), row) for row in rows)
            named = list(gathered(keyed))

        def stds(found: list[float | None]) -> str:
            return span([std for std in found if std is not None])

        table = [
            (
                name if len(those) == 1 else f"{name} ×{len(those)}",
                _shapes(those[0]),
                stds([_std(row.a) for row in those]),
                stds([_std(row.b) for row in those]),
                stds([row.ratio for row in those]),
                those[0].verdict,
            )
            for name, those in named
        ]
        head = ("name", "shape", "std of A", "std of B", "B / A", "")
        print_table(head, table, spare=("shape",))
        counts: dict[str, int] = {}
        for row in rows:
            counts[row.verdict] = counts.get(row.verdict, 0) + 1
        write(", ".join(f"{n} {verdict}" for verdict, n in counts.items()) or "no tensors")


def _shapes(row: _Row) -> str:
    shapes = [" × ".join(map(str, x.shape)) or "scalar" for x in (row.a, row.b) if x is not None]
    return " and ".join(dict.fromkeys(shapes))


def _rows(a: Mapping[str, Values], b: Mapping[str, Values]) -> list[_Row]:
    """Return a row for every name; a prefix that all names of one side have is left out."""
    if not a.keys() & b.keys():
        a, b = _matched(a, b)
    names = [*a, *(name for name in b if name not in a)]
    return [_Row(name, a.get(name), b.get(name)) for name in names]


def _matched(
    a: Mapping[str, Values], b: Mapping[str, Values]
) -> tuple[Mapping[str, Values], Mapping[str, Values]]:
    """Return both with the first word of the names left out where that brings them together."""
    for one, other, swapped in ((a, b, False), (b, a, True)):
        short = {name.partition(".")[2] or name: x for name, x in one.items()}
        if len(short) == len(one) and short.keys() & other.keys():
            return (other, short) if swapped else (short, other)
    return a, b

"""Writes the tables of the pages that follow from the code: `python docs/tables.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from initrate.rule import gamma_from_std, std_from_gamma
from initrate.study import PRESETS, cells, preset
from initrate.tasks import VARIANTS, unseen_table

HERE = Path(__file__).parent


def variants() -> str:
    """Return the table of variants: what is seen, what is unseen, and what its answers are."""
    rows = [
        (
            f"`{row['variant']}`",
            f"{row['n_seen']} of {row['n_pairs']}",
            row["overridden"] or "none",
            f"({row['pair']}), {row['role']}" if row["pair"] else "none",
            row["composed"] or "",
            row["mirrored"] or "none",
            row["reverse"] or "",
        )
        for row in unseen_table()
    ]
    head = (
        *("variant", "pairs seen", "exception", "unseen pair", "composed", "mirrored"),
        "the reversed pair",
    )
    lines = [f"- `{name}`: {line}." for name, line in VARIANTS.items()]
    return "\n".join([markdown(head, rows), "", *lines])


def presets() -> str:
    """Return the table of presets: what each is for, and its size."""
    rows: list[Sequence[object]] = []
    for name, line in PRESETS.items():
        config = preset(name)
        axes = ", ".join(f"{len(v)} {axis}" for axis, v in config.all_axes.items())
        steps = f"{config.training.steps:,} × {config.training.batch:,}"
        model = config.model
        width = f"{model.d_model}, {model.d_ff}, {model.activation}"
        row = (f"`{name}`", line, axes, len(config.seeds), len(cells(config)), steps, width)
        rows.append(row)
    head = ("preset", "what it is", "axes", "seeds", "runs", "steps × batch", "d_model, d_ff")
    return markdown(head, rows)


def drift() -> str:
    """Return the table of the rate that one std means at each width."""
    rows = [
        (
            f"{d_in:,}",
            *(f"{gamma_from_std(std, d_in):.3f}" for std in (0.02, 0.01)),
            *(f"{std_from_gamma(gamma, d_in):.2g}" for gamma in (0.5, 0.8)),
        )
        for d_in in (64, 128, 256, 512, 768, 1024, 2048, 4096, 8192, 16384)
    ]
    head = ("d_in", "γ of std 0.02", "γ of std 0.01", "std of γ 0.5", "std of γ 0.8")
    return markdown(head, rows)


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "variants": ("tasks.md", variants),
    "presets": ("presets.md", presets),
    "drift": ("std-and-width.md", drift),
}
"""Name of a table -> its page, and what writes it."""


def markdown(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(entry) for entry in line)} |" for line in lines)


def renewed(name: str) -> tuple[Path, str]:
    """Return the page of a table, and the page's text with the table as it should be."""
    page, write = TABLES[name]
    text = (HERE / page).read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    head, rest = text.split(begin)
    tail = rest.split(end)[1]
    return HERE / page, f"{head}{begin}{write()}\n{end}{tail}"


if __name__ == "__main__":
    for table in TABLES:
        path, text = renewed(table)
        path.write_text(text, encoding="utf-8")

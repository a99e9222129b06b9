"""The data that the page's script reads: small, rounded, and safe inside a script element."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from initrate.report._colours import label_style
from initrate.report._grid import Grid, Group, chosen_by_training_loss
from initrate.report._maps import is_fitted
from initrate.report._source import Row, Source, number
from initrate.report._words import axis_words, label_words, text_of

CURVES = (
    "training_loss",
    "training_accuracy",
    "seen_accuracy",
    "inferential_accuracy",
    "symmetric_accuracy",
    "probe_accuracy",
    "lr",
)
MOST_NUMBERS = 600_000
"""Curves are thinned, and say so, where a study would put more numbers than this on the page."""
_LEAST_POINTS = 24
_RUN_COLUMNS = (
    "training_accuracy",
    "seen_accuracy",
    "inferential_accuracy",
    "symmetric_accuracy",
    "probe_accuracy",
    "commutes",
    "best_inferential_accuracy",
    "best_step",
    "final_training_loss",
)


def payload(source: Source, grid: Grid) -> dict[str, object]:
    """Return all that the script needs, as plain JSON values."""
    thinned, curves = _curves(source)
    return {
        "schema": 1,
        "study": source.name,
        "start": _start(source, grid),
        "groups": [_group(source, group) for group in grid.groups],
        "runs": [_run(source, row) for row in source.cells],
        "curves": curves,
        "thinned": thinned,
        "pairs": [
            {
                "text": pair.text,
                "composed": pair.composed_shift,
                "mirrored": pair.mirrored_shift,
                "probe": pair.probe,
            }
            for pair in source.pairs
        ],
        "positions": [_positions(source, row) for row in source.cells],
        "shifts": [_shifts(source, row) for row in source.cells],
        "floors": {name: _rounded(nats) for name, nats in source.floors.items()},
        "meanings": _meanings(source),
        "lrs": [text_of(lr) for lr in source.lrs],
        "csv": _csv_columns(source),
    }


def _meanings(source: Source) -> dict[str, str]:
    """What each label found says, for the panel of the chosen cell."""
    from initrate.study import LABELS

    meanings: Mapping[str, str] = {str(name): words for name, words in LABELS.items()}
    found = dict.fromkeys(str(row["label"]) for row in source.cells)
    return {name: meanings[name] for name in found if name in meanings}


def script_json(content: object) -> str:
    r"""Return JSON that is safe inside a script element: nothing in it can end the element.

    >>> script_json({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _start(source: Source, grid: Grid) -> int:
    """Return the cell chosen at first: the one whose seeds lie furthest apart."""

    def spread(group: Group) -> float:
        found = [number(source.cells[run], "inferential_accuracy") for run in group.members]
        shares = [entry for entry in found if entry is not None]
        return max(shares) - min(shares) if shares else -1.0

    return max(grid.groups, key=spread).index


def _group(source: Source, group: Group) -> dict[str, object]:
    chosen = chosen_by_training_loss(source, group) if source.lrs else ()
    shown = chosen or group.members
    found = [number(source.cells[run], "inferential_accuracy") for run in shown]
    return {
        "words": group.words,
        "runs": list(group.members),
        "chosen": list(chosen),
        "spread": source.spread([entry for entry in found if entry is not None]),
    }


def _run(source: Source, row: Row) -> dict[str, object]:
    label = str(row["label"])
    style = label_style(label)
    seeds = [(column, row.get(column)) for column in source.seed_columns]
    found: dict[str, object] = {
        "cell": row.get("cell"),
        "seed": " · ".join(
            f"{axis_words(name)[0].removeprefix('seed ') or 'seed'} {text_of(seed)}"
            for name, seed in seeds
        ),
        "lr": text_of(row.get("lr")),
        "label": label,
        "letter": style.letter,
        "words": label_words(label),
        "diverged_step": row.get("diverged_step"),
    }
    numbers = {column: _rounded(number(row, column)) for column in _RUN_COLUMNS}
    # One constant answer to everything commutes too: of such runs it is no finding.
    return found | numbers | ({} if is_fitted(row) else {"commutes": None})


def _curves(source: Source) -> tuple[int, list[dict[str, list[float | None]]]]:
    """Return every how manyth logged step is kept, and the kept ones a run."""
    longest = max((len(rows) for rows in source.curves.values()), default=0)
    most = MOST_NUMBERS // max(1, len(source.cells) * len(CURVES))
    every = max(1, math.ceil(longest / max(most, _LEAST_POINTS)))
    curves = []
    for row in source.cells:
        rows = source.curves.get(str(row.get("cell")), ())
        kept = [r for place, r in enumerate(rows) if place % every == 0 or place == len(rows) - 1]
        curve: dict[str, list[float | None]] = {"step": [number(r, "step") for r in kept]}
        for column in CURVES:
            points = [_rounded(number(r, column)) for r in kept]
            if any(point is not None for point in points):
                curve[column] = points
        curves.append(curve)
    return every, curves


def _positions(source: Source, row: Row) -> dict[str, list[list[float | None]]]:
    """Return [position, n, composed, mirrored] rows by pair."""
    found: dict[str, list[list[float | None]]] = {}
    for count in source.counts.get(str(row.get("cell")), ()):
        if count.get("by") == "position":
            entry = [number(count, name) for name in ("index", "n", "composed", "mirrored")]
            found.setdefault(str(count.get("pair")), []).append(entry)
    return {pair: sorted(rows, key=lambda entry: entry[0] or 0.0) for pair, rows in found.items()}


def _shifts(source: Source, row: Row) -> dict[str, list[list[float | None]]]:
    """Return [prediction minus key, n] rows by pair."""
    found: dict[str, list[list[float | None]]] = {}
    for entry in source.shifts.get(str(row.get("cell")), ()):
        pair = found.setdefault(str(entry.get("pair")), [])
        pair.append([number(entry, "shift"), number(entry, "n")])
    return found


def _csv_columns(source: Source) -> dict[str, Sequence[object]]:
    """Return the whole cells table by column, for the page's download."""
    names = list(dict.fromkeys(name for row in source.cells for name in row))
    return {name: [_plain(row.get(name)) for row in source.cells] for name in names}


def _plain(found: object) -> object:
    if isinstance(found, float) and not math.isfinite(found):
        return None
    if found is None or isinstance(found, bool | int | float | str):
        return found
    return json.dumps(found, default=str) if isinstance(found, list | Mapping) else str(found)


def _rounded(found: float | None) -> float | None:
    """Return a number with five digits: more than a screen shows, a third of the size."""
    if found is None or not math.isfinite(found):
        return None
    return float(f"{found:.5g}")

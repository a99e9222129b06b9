"""What to do after a diagram, in a line, from what its runs came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from initrate.cli._board import Row
from initrate.report import origin_of
from initrate.study import StudyConfig

FINER = 5
"""Into so many steps a border's interval of gamma is divided."""


def next_step(rows: Sequence[Row], config: StudyConfig) -> str:
    """Return what to do after a study with these rows of a summary.

    >>> from initrate.study import preset
    >>> rows = [{"gamma": g, "n_seeds": 2, "labels": {"composed": n, "mixed": 2 - n}}
    ...         for g, n in ((0.5, 0), (0.8, 2))]
    >>> next_step(rows, preset("smoke"))
    'next: the border of composed runs lies between gamma 0.5 and 0.8: --gamma 0.5:0.8:0.06'
    """
    labels: Counter[str] = Counter()
    for row in rows:
        labels.update(_labels(row))
    n_runs, n_not_trained = sum(labels.values()), labels["not_trained"]
    if 2 * n_not_trained >= n_runs:
        return f"next: {n_not_trained} of {n_runs} runs are not trained: {_more_steps(config)}"
    if all(row.get("n_seeds") == 1 for row in rows):
        return "next: one seed shows no spread: add more, as in --seeds 3"
    border = _border(rows, config)
    if border is None:
        return "next: no border of composed runs in this grid: other rates by --gamma, or --depth"
    low, high = border
    step = (high - low) / FINER
    finer = ":".join(f"{number:.12g}" for number in (low, high, step))
    return (
        f"next: the border of composed runs lies between gamma {low:g} and {high:g}: "
        f"--gamma {finer}"
    )


def _more_steps(config: StudyConfig) -> str:
    """The preset's own steps where a study has fewer; a preset that trains nothing has others."""
    from initrate.study import PRESETS, preset

    origin = origin_of(config)
    if origin is not None and origin.name == "smoke":
        return "smoke only shows that all is installed; initrate phase trains the diagram"
    if "steps" in config.axes:
        return "give them more steps"
    steps, own = config.training.steps, 0
    if origin is not None and origin.name in PRESETS:
        own = preset(origin.name).training.steps
    if steps < own:
        return f"the preset {origin.name if origin else ''} has {own:,} steps: --set steps={own}"
    return f"give them more steps, as in --set steps={2 * steps}"


def _border(rows: Sequence[Row], config: StudyConfig) -> tuple[float, float] | None:
    """The neighbouring rates between which most lines of the grid begin or cease to compose."""
    lines: dict[tuple[object, ...], dict[float, bool]] = {}
    for row in rows:
        gamma, counts = row.get("gamma"), _labels(row)
        if isinstance(gamma, float):
            place = tuple(row.get(name) for name in config.axes if name != "gamma")
            composes = 2 * counts.get("composed", 0) > sum(counts.values())
            lines.setdefault(place, {})[gamma] = composes
    borders = Counter(
        (low, high)
        for line in lines.values()
        for low, high in pairwise(sorted(line))
        if line[low] != line[high]
    )
    return min(borders, key=lambda border: (-borders[border], border)) if borders else None


def _labels(row: Row) -> Mapping[str, int]:
    found = row.get("labels")
    return found if isinstance(found, Mapping) else {}

"""What a cell learned, in words: its fit and its label, pure functions of what is stored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Literal, NamedTuple, cast

from initrate.errors import InputError, unknown
from initrate.statistics import wilson

Fit = Literal["not_trained", "data_memorized", "fitted", "diverged"]
Label = Literal[
    "diverged",
    "not_trained",
    "data_memorized",
    "composed",
    "composed_with_mirrored_exception",
    "mirrored_lookup",
    "mirrored",
    "other",
    "mixed",
]
LABELS: Mapping[Label, str] = {
    "diverged": "the loss or a weight became infinite or not a number",
    "not_trained": "training sequences are not learned (yet)",
    "data_memorized": "training sequences are learned, seen pairs with other keys are not",
    "composed": "the unseen pair gets the composed answer, and so does the probe, if any",
    "composed_with_mirrored_exception": "the unseen pair gets the mirrored answer, the probe the "
    "composed one: the exception is carried over to its mirror image",
    "mirrored_lookup": "the unseen pair gets the mirrored answer, the probe not the composed one",
    "mirrored": "the unseen pair gets the answer of its mirror image",
    "other": "the unseen pair gets a third answer, one and the same shift of the key",
    "mixed": "the unseen pair gets no one answer, or the probe does not bear it out",
}
"""Every label and what it says."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The numbers that labels depend on; they are stored with the study.

    >>> Thresholds().fitted
    0.9
    """

    trained: float = 0.9
    """Training accuracy below this: not trained."""
    memorized: float = 0.99
    """Training accuracy from here on, with seen accuracy below `fitted`: data memorized."""
    fitted: float = 0.9
    """Seen accuracy (seen pairs, test keys) from here on: fitted."""
    share: float = 0.5
    """An answer counts as the model's where the lower bound of its share is above this."""
    level: float = 0.95
    """The level of the Wilson interval of that share."""
    floor: float = 0.05
    """A loss within this part of the target's entropy is at the floor."""

    def __post_init__(self) -> None:
        for name, found in asdict(self).items():
            number = isinstance(found, int | float) and not isinstance(found, bool)
            if not number or not 0 < found < 1:
                raise InputError(f"threshold {name} is {found!r}: expected between 0 and 1")

    @classmethod
    def from_dict(cls, table: Mapping[str, object]) -> Thresholds:
        """Return the thresholds of a table; those it does not name keep their defaults."""
        if not isinstance(table, Mapping):
            raise InputError(f"thresholds is {table!r}: expected a table, as in {{'fitted': 0.95}}")
        known = [field.name for field in fields(cls)]
        for key in table:
            if key not in known:
                raise unknown("threshold", key, known)
        return cls(**cast("dict[str, float]", dict(table)))


class Verdict(NamedTuple):
    """What was learned: the fit, and the label, which is the fit where that is not `fitted`."""

    fit: Fit
    label: Label


def label(scalars: Mapping[str, object], thresholds: Thresholds | None = None) -> Verdict:
    """Return the fit and the label of a cell from its scalars and counts.

    With a probe (`probe_n` above 0), `composed` needs the composed answer on the probe as well:
    composed on the primary pair alone is `mixed`.

    >>> fitted = {"training_accuracy": 1.0, "seen_accuracy": 0.99}
    >>> label({**fitted, "n_unseen": 512, "unseen_composed": 480})
    Verdict(fit='fitted', label='composed')
    >>> label({**fitted, "n_unseen": 512, "unseen_composed": 480, "probe_n": 512})
    Verdict(fit='fitted', label='mixed')
    >>> label({"training_accuracy": 0.3, "seen_accuracy": 0.1})
    Verdict(fit='not_trained', label='not_trained')
    """
    limits = thresholds or Thresholds()
    fit = _fit(scalars, limits)
    return Verdict(fit, _answer(scalars, limits) if fit == "fitted" else fit)


def at_floor(
    loss: float | None, floor: float | None, thresholds: Thresholds | None = None
) -> bool | None:
    """Return whether a loss is that of a model which does not look at its input.

    None where the loss or the floor (the entropy of the target, in nats) is not known.

    >>> at_floor(4.5, 4.52), at_floor(1.2, 4.52), at_floor(None, 4.52)
    (True, False, None)
    """
    if loss is None or floor is None or not math.isfinite(loss):
        return None
    return loss >= (1 - (thresholds or Thresholds()).floor) * floor


def _fit(scalars: Mapping[str, object], limits: Thresholds) -> Fit:
    if scalars.get("diverged"):
        return "diverged"
    training = _number(scalars, "training_accuracy")
    seen = _number(scalars, "seen_accuracy")
    if training >= limits.trained and seen >= limits.fitted:
        return "fitted"
    if training >= limits.memorized:
        return "data_memorized"
    # Between the two lies a run on its way: its training sequences are not all learned.
    return "not_trained"


def _answer(scalars: Mapping[str, object], limits: Thresholds) -> Label:
    if _passes(scalars, "unseen_composed", "n_unseen", limits):
        borne_out = not scalars.get("probe_n") or _passes(
            scalars, "probe_composed", "probe_n", limits
        )
        return "composed" if borne_out else "mixed"
    if _passes(scalars, "unseen_mirrored", "n_unseen", limits):
        return _mirrored(scalars, limits)
    if _passes(scalars, "unseen_top_shift_n", "n_unseen", limits):
        return "other"
    return "mixed"


def _mirrored(scalars: Mapping[str, object], limits: Thresholds) -> Label:
    """The probe, a pair unseen in both orders, tells a carried-over exception from a look-up."""
    if not scalars.get("probe_n"):
        return "mirrored"
    low, high = _share(scalars, "probe_composed", "probe_n", limits)
    if low > limits.share:
        return "composed_with_mirrored_exception"
    return "mirrored_lookup" if high < limits.share else "mixed"


def _passes(scalars: Mapping[str, object], k: str, n: str, limits: Thresholds) -> bool:
    return _share(scalars, k, n, limits)[0] > limits.share


def _share(
    scalars: Mapping[str, object], k: str, n: str, limits: Thresholds
) -> tuple[float, float]:
    count, total = (int(_number(scalars, name)) for name in (k, n))
    return wilson(count, total, limits.level)


def _number(scalars: Mapping[str, object], name: str) -> float:
    found = scalars.get(name)
    if isinstance(found, int | float) and math.isfinite(found):
        return float(found)
    return 0.0

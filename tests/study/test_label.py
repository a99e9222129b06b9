"""Fit and label: every branch, and the thresholds at their edges."""

from __future__ import annotations

import pytest

from initrate.errors import InputError
from initrate.statistics import wilson
from initrate.study import LABELS, Thresholds, at_floor, label

FITTED = {"training_accuracy": 0.97, "seen_accuracy": 0.93, "n_unseen": 1000}


@pytest.mark.parametrize(
    ("training", "seen", "fit"),
    [
        (0.899, 0.95, "not_trained"),
        (0.9, 0.9, "fitted"),
        (0.9, 0.899, "not_trained"),
        (0.9899, 0.5, "not_trained"),
        (0.99, 0.899, "data_memorized"),
        (1.0, 0.9, "fitted"),
        (None, None, "not_trained"),
        (float("nan"), 1.0, "not_trained"),
    ],
)
def test_fit(training: float | None, seen: float | None, fit: str) -> None:
    verdict = label({"training_accuracy": training, "seen_accuracy": seen, "diverged": False})
    assert verdict.fit == fit
    assert verdict.label == (fit if fit != "fitted" else "mixed")


def test_diverged_goes_before_all() -> None:
    assert label({**FITTED, "unseen_composed": 1000, "diverged": True}) == ("diverged", "diverged")


def _least_that_passes(n: int) -> int:
    return next(k for k in range(n + 1) if wilson(k, n)[0] > 0.5)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"unseen_composed": 900}, "composed"),
        ({"unseen_mirrored": 900}, "mirrored"),
        ({"unseen_top_shift_n": 900, "unseen_top_shift": 3}, "other"),
        ({"unseen_composed": 480, "unseen_mirrored": 480}, "mixed"),
        ({"unseen_composed": 500}, "mixed"),
        ({"n_unseen": 0}, "mixed"),
        ({"n_unseen": None, "unseen_composed": None}, "mixed"),
        # With the probe, a pair that is unseen in both orders.
        ({"unseen_composed": 900, "probe_n": 800, "probe_composed": 0}, "mixed"),
        ({"unseen_composed": 900, "probe_n": 800, "probe_composed": 400}, "mixed"),
        ({"unseen_composed": 900, "probe_n": 800, "probe_composed": 700}, "composed"),
        ({"unseen_composed": 900, "probe_n": 0, "probe_composed": 0}, "composed"),
        (
            {"unseen_mirrored": 900, "probe_n": 800, "probe_composed": 700},
            "composed_with_mirrored_exception",
        ),
        ({"unseen_mirrored": 900, "probe_n": 800, "probe_composed": 100}, "mirrored_lookup"),
        ({"unseen_mirrored": 900, "probe_n": 800, "probe_composed": 400}, "mixed"),
        ({"unseen_top_shift_n": 900, "probe_n": 800, "probe_composed": 700}, "other"),
    ],
)
def test_labels(counts: dict[str, object], expected: str) -> None:
    assert label({**FITTED, **counts}) == ("fitted", expected)
    assert expected in LABELS


def test_the_lower_bound_decides_and_not_the_share() -> None:
    least = _least_that_passes(1000)
    assert 500 < least < 540
    at, below = (label({**FITTED, "unseen_composed": k}).label for k in (least, least - 1))
    assert (at, below) == ("composed", "mixed")
    # The same share of few sequences says less.
    few = {**FITTED, "n_unseen": 10, "unseen_composed": 6}
    assert label(few).label == "mixed"


def test_thresholds_change_labels() -> None:
    counts = {**FITTED, "unseen_composed": 600}
    assert label(counts).label == "composed"
    assert label(counts, Thresholds(share=0.7)).label == "mixed"
    assert label(counts, Thresholds(fitted=0.95)).label == "not_trained"


@pytest.mark.parametrize("found", [0, 1, -0.1, 1.5, float("nan"), True, "0.9"])
def test_thresholds_lie_between_0_and_1(found: object) -> None:
    with pytest.raises(InputError, match="threshold share"):
        Thresholds.from_dict({"share": found})


def test_unknown_threshold() -> None:
    with pytest.raises(InputError, match="did you mean 'share'"):
        Thresholds.from_dict({"shar": 0.5})


def test_at_floor() -> None:
    assert at_floor(4.52 * 0.95, 4.52) is True
    assert at_floor(4.52 * 0.949, 4.52) is False
    assert at_floor(float("nan"), 4.52) is None
    assert at_floor(4.5, None) is None

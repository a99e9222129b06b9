"""Baselines and floors of the loss against brute force."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pytest

from initrate.tasks import BASELINES, AnchorTask, baselines, loss_floors, variant
from tests.tasks.checker import Checker


def row_of(task: AnchorTask, baseline: str, pair: str | None) -> dict[str, object]:
    (row,) = [row for row in baselines(task) if (row["baseline"], row["pair"]) == (baseline, pair)]
    return row


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", ["34-wrong", "without-34", "nine-anchors", "non-commuting"])
def test_additive_fit_is_the_least_squares_fit(name: str, tied: bool) -> None:
    """One row of a design matrix for every seen example, where the library uses its symmetry."""
    task = variant(name, key_high=50)
    checker = Checker(task.to_dict())
    keys = range(20, 51)
    anchors = list(task.anchors)

    def features(key: int, pair: tuple[int, ...]) -> np.ndarray:
        found = np.zeros(len(keys) + 2 * len(anchors))
        found[key - 20] = 1
        for place, anchor in enumerate(pair):
            found[len(keys) + anchors.index(anchor) + (0 if tied else place * len(anchors))] += 1
        return found

    seen = [(key, pair) for key in keys for pair in checker.pairs if pair not in checker.held_out]
    design = np.array([features(*one) for one in seen])
    answers = np.array([checker.target(*one) for one in seen])
    effects, *_ = np.linalg.lstsq(design, answers, rcond=None)

    def share(pairs: list[tuple[int, ...]], mirrored: bool = False, target: bool = False) -> float:
        shares: list[float] = []
        for pair in pairs:
            for key in keys:
                fitted = round(float(features(key, pair) @ effects), 6)
                best = {math.floor(fitted + 0.5), math.ceil(fitted - 0.5)}
                wanted = checker.mirrored(key, pair) if mirrored else checker.composed(key, pair)
                wanted = checker.target(key, pair) if target else wanted
                shares.append((wanted in best) / len(best))
        return float(np.mean(shares))

    baseline = "tied_additive" if tied else "ordered_additive"
    row = row_of(task, baseline, "4,3")
    assert row["composed"] == pytest.approx(share([(4, 3)]))
    if row["mirrored"] is not None:
        assert row["mirrored"] == pytest.approx(share([(4, 3)], mirrored=True))
    seen_pairs = [pair for pair in checker.pairs if pair not in checker.held_out]
    assert row["seen_accuracy"] == pytest.approx(share(seen_pairs, target=True))


def test_without_the_exception_additive_fits_compose() -> None:
    for name in ("without-34", "nine-anchors"):
        for baseline in ("ordered_additive", "tied_additive"):
            row = row_of(variant(name), baseline, "4,3")
            assert row["composed"] == row["seen_accuracy"] == 1.0


def test_unordered_lookup_mirrors_and_has_no_answer_on_the_probe() -> None:
    task = variant("34-wrong+probe")
    row = row_of(task, "unordered_lookup", "4,3")
    assert (row["composed"], row["mirrored"], row["answer_shift"]) == (0.0, 1.0, -6)
    assert row["seen_accuracy"] == 1.0
    assert row_of(task, "unordered_lookup", "1,2")["composed"] == 0.0
    turned = row_of(variant("non-commuting"), "unordered_lookup", "4,3")
    # Six ordered pairs with anchor 3 do not commute; five of them are seen, (3,4) alone.
    assert turned["mirrored"] == 1.0
    assert turned["seen_accuracy"] == pytest.approx(1 - 4 * 0.5 / 15)


def test_nearest_neighbour_by_brute_force() -> None:
    task = AnchorTask(
        variant="few",
        anchors=(1, 2, 3),
        maps=(1, 0, -1),
        unseen=((1, 3),),
        overrides={(2, 2): 0},
        key_high=30,
    )
    # Neighbours of (1,3): (1,1) +2, (1,2) +1, (2,3) -1, (3,3) -2: four answers, none of them 0.
    row = row_of(task, "nearest_neighbour", "1,3")
    assert (row["composed"], row["seen_accuracy"]) == (0.0, 1.0)
    same = AnchorTask(
        variant="same",
        anchors=(1, 2, 3),
        maps=(0, 0, 5),
        unseen=((1, 1),),
        overrides=(),
        key_high=30,
    )
    # Neighbours of (1,1): (1,2) 0, (2,1) 0, (1,3) +5, (3,1) +5: a lot between two answers.
    assert row_of(same, "nearest_neighbour", "1,1")["composed"] == 0.5


def test_every_baseline_and_unseen_pair_has_a_row(task: AnchorTask) -> None:
    rows = baselines(task)
    n_unseen = len(task.unseen) + len(task.probe)
    assert len(rows) == len(BASELINES) * max(1, n_unseen)
    assert {row["baseline"] for row in rows} == set(BASELINES)
    for row in rows:
        assert 0 <= row["seen_accuracy"] <= 1
        assert (row["pair"] is None) == (n_unseen == 0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("34-wrong", {"key_only": 2.25, "key_and_one_anchor": 1.33}),
        ("without-34", {"key_only": 2.14, "key_and_one_anchor": 1.26}),
    ],
)
def test_floors_of_the_two_set_ups(name: str, expected: dict[str, float]) -> None:
    found = loss_floors(variant(name))
    for floor, nats in ({"no_input": 4.52, "pair_only": 4.38} | expected).items():
        assert found[floor] == pytest.approx(nats, abs=0.005)


@pytest.mark.parametrize("name", ["34-wrong", "without-34", "non-commuting"])
def test_floors_by_enumeration(name: str) -> None:
    task = variant(name)
    checker = Checker(task.to_dict())
    seen = [pair for pair in checker.pairs if pair not in checker.held_out]
    answers: dict[str, defaultdict[object, Counter[int]]] = {
        floor: defaultdict(Counter) for floor in ("no_input", "pair_only", "key_only", "1", "2")
    }
    for position in range(7):
        keys = [key for key in range(20, 100) if key % 9 != position]
        for key in keys:
            for pair in seen:
                weight = 1 / (7 * len(keys) * len(seen))
                target = checker.target(key, pair)
                for floor, given in [
                    ("no_input", None),
                    ("pair_only", pair),
                    ("key_only", key),
                    ("1", (key, pair[0])),
                    ("2", (key, pair[1])),
                ]:
                    answers[floor][given][target] += weight  # pyright: ignore[reportArgumentType]

    def loss(floor: str) -> float:
        return -sum(
            share * math.log(share / sum(counter.values()))
            for counter in answers[floor].values()
            for share in counter.values()
        )

    found = loss_floors(task)
    for floor in ("no_input", "pair_only", "key_only"):
        assert found[floor] == pytest.approx(loss(floor))
    assert found["key_and_one_anchor"] == pytest.approx(min(loss("1"), loss("2")))


def test_floors_fall_as_more_is_known(task: AnchorTask) -> None:
    found = loss_floors(task)
    assert found["no_input"] >= found["pair_only"] - 1e-9
    assert found["no_input"] >= found["key_only"] - 1e-9
    assert found["key_only"] >= found["key_and_one_anchor"] - 1e-9 >= -1e-8

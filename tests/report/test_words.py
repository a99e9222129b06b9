from __future__ import annotations

from initrate.report._words import (
    enumerate_words,
    seeds_words,
    share,
    spread_words,
    text_of,
    texts_of,
)


def test_a_share_is_one_only_where_all_are_right():
    assert share(0.996) == share(0.99999) == "0.99"
    assert share(0.994) == "0.99"
    assert share(1.0) == "1.00"
    assert share(0.0004) == "0.00"


def test_axis_values_are_of_one_kind():
    assert texts_of([0.5, 1.0]) == ("0.5", "1.0")
    assert texts_of([2, 3, 4]) == ("2", "3", "4")
    assert texts_of([0.0, 0.01, 1.0]) == ("0", "0.01", "1")
    assert texts_of([1e-4, 1.25e-4]) == ("1e-4", "1.25e-4")
    assert texts_of([0.0, 1e-4]) == ("0", "1e-4")
    assert texts_of(["relu", True, None]) == ("relu", "yes", "none")
    assert texts_of([]) == ()


def test_values_of_other_kinds_are_text():
    assert text_of([0, 0.5]) == "0 0.5"
    assert text_of(()) == "none"
    assert text_of(-0.0002) == "-2e-4"


def test_lists_in_sentences():
    assert enumerate_words([]) == ""
    assert enumerate_words(["one"]) == "one"
    assert enumerate_words(["one", "two"]) == "one and two"


def test_the_spread_of_seeds_says_what_it_covers():
    assert spread_words([]) == "no seed"
    assert spread_words([0.4]) == "one seed"
    assert spread_words([0.4, 0.2]) == "range of 2 seeds 0.20 to 0.40 (covers 50 %)"
    twenty = spread_words([n / 20 for n in range(20)])
    assert twenty == "interval of 20 seeds 0.25 to 0.70 (covers 95 %)"


def test_crossed_seeds_are_runs_and_cover_nothing():
    seeds = seeds_words(1, {"init": 2, "order": 2})
    assert seeds == "2 init seeds × 2 order seeds"
    words = spread_words([0.3, 0.1, 0.2, 0.4], seeds, 4)
    assert words == f"range of 4 runs, {seeds}: 0.10 to 0.40"
    assert spread_words([0.3, 0.1], seeds, 4) == f"range of 2 runs, out of {seeds}: 0.10 to 0.30"
    assert (spread_words([0.3], seeds, 4), spread_words([], seeds, 4)) == ("one run", "no run")


def test_seeds_are_counted_by_kind():
    assert seeds_words(1, {}) == seeds_words(1, {"init": 1}) == "1 seed"
    assert seeds_words(3, {"init": 2}) == "3 seeds × 2 init seeds"
    assert seeds_words(1, {"init": 3, "order": 1}) == "3 init seeds"

from __future__ import annotations

from initrate.report._words import enumerate_words, share, spread_words, text_of, texts_of


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

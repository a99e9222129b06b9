from __future__ import annotations

from dataclasses import replace

import pytest

from initrate.report._grid import make_grid
from initrate.report._headline import headline
from initrate.report._source import Axis
from tests.report.synthetic import PHASE, synthetic


def head_of(source):
    return headline(source, make_grid(source))


def relabelled(source, label: str):
    return replace(source, cells=[{**row, "label": label} for row in source.cells])


def test_the_title_counts_runs():
    assert head_of(relabelled(synthetic(), "composed")).title == "All 72 runs composed"
    assert head_of(relabelled(synthetic(), "mixed")).title == "None of 72 runs composed"
    mirrored = head_of(relabelled(synthetic(), "mirrored")).title
    assert mirrored == "None of 72 runs composed; 72 mirrored"
    assert head_of(synthetic(share_done=0)).title == "No run has finished yet"
    one = synthetic(axes=(), n_seeds=1)
    assert head_of(relabelled(one, "composed")).title == "The one run composed"
    assert head_of(relabelled(one, "mixed")).title == "The one run did not compose"


def mixed_up(source, *labels: str):
    """Return the study with these labels, run by run, the last one for all further runs."""
    found = [*labels, *[labels[-1]] * (len(source.cells) - len(labels))]
    cells = [{**row, "label": label} for row, label in zip(source.cells, found, strict=True)]
    return replace(source, cells=cells)


UNFIT = ("not_trained", "data_memorized", "diverged")


@pytest.mark.parametrize(
    ("labels", "title"),
    [
        (["composed"] * 12 + ["mixed"] * 8, "12 of 20 runs composed"),
        (
            ["composed"] * 12 + ["mixed"] * 5 + [*UNFIT],
            "12 of 17 fitted runs composed; 3 did not fit",
        ),
        (["composed"] * 17 + [*UNFIT], "All 17 fitted runs composed; 3 did not fit"),
        (["composed"] * 2 + ["not_trained"] * 18, "Both fitted runs composed; 18 did not fit"),
        (["mixed"] * 17 + [*UNFIT], "None of 17 fitted runs composed; 3 did not fit"),
        (
            ["mirrored"] * 17 + [*UNFIT],
            "None of 17 fitted runs composed; 17 mirrored; 3 did not fit",
        ),
        (["composed"] + ["not_trained"] * 19, "The one fitted run composed; 19 did not fit"),
        (["mixed"] + ["diverged"] * 19, "The one fitted run did not compose; 19 did not fit"),
    ],
)
def test_the_title_counts_fitted_runs(labels, title):
    assert head_of(mixed_up(synthetic(axes=(), n_seeds=20), *labels)).title == title


@pytest.mark.parametrize(
    ("labels", "title"),
    [
        (["mixed"] + ["not_trained"] * 3, "the one fitted run did not compose; 3 did not fit"),
        (["composed"] * 4, "all 4 runs composed"),
        (["mixed"] * 4, "none of 4 runs composed"),
        (["not_trained"] * 4, "not trained: 4 of 4 runs; composing cannot be judged"),
    ],
)
def test_the_title_of_an_unfinished_study_says_first_how_many_runs_there_are(labels, title):
    source = mixed_up(synthetic(axes=(), n_seeds=20, share_done=0.2), *labels)
    assert head_of(source).title == f"4 of 20 runs finished: {title}"


def test_without_a_whole_seed_of_learning_rates_nothing_is_judged_yet():
    source = synthetic(axes=(), n_seeds=1, lrs=(1e-4, 2e-4), share_done=0.5)
    assert head_of(source).title == "1 of 2 runs finished: none can be judged yet"


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_head_without_a_finding_says_nothing_of_shares(mirrored):
    gammas = Axis("gamma", "gamma", (0.6, 0.8))
    source = relabelled(synthetic(axes=(gammas,), mirrored=mirrored), "not_trained")
    cells = [
        {**row, "inferential_accuracy": 0.011 + 0.0001 * place, "probe_accuracy": 0.01}
        for place, row in enumerate(source.cells)
    ]
    assert head_of(replace(source, cells=cells)).sentences == ()
    # Fitted runs without a composed answer: the same, but for the label.
    fitted = relabelled(replace(source, cells=cells), "mixed")
    assert head_of(fitted).sentences == ("Every run is labelled mixed.",)


@pytest.mark.parametrize("mirrored", [False, True])
def test_nowhere_is_said_once_and_beside_a_share_above_one_half(mirrored):
    source = synthetic(axes=(Axis("gamma", "gamma", (0.6, 0.8)),), mirrored=mirrored)
    low = {"inferential_accuracy": 0.1, "probe_accuracy": 0.1 if mirrored else None}
    cells = [{**row, **low, "label": "mixed"} for row in source.cells]
    cells[0] |= {"inferential_accuracy": 0.9, "label": "composed"}
    text = " ".join(head_of(replace(source, cells=cells)).sentences)
    assert text.count("No cell has a median composed share above one half.") == 1
    assert "nowhere" not in text
    if mirrored:
        # The probe passes one half somewhere: beside it, nowhere is a finding.
        cells = [{**row, "probe_accuracy": 0.9} for row in cells]
        text = " ".join(head_of(replace(source, cells=cells)).sentences)
        half = "the median composed share is above one half"
        assert f"On the unseen pair (4, 3) {half} nowhere. On the probe {half} at" in text


@pytest.mark.parametrize(
    ("labels", "shares", "said"),
    [
        (["composed"] * 3, (0.9, 0.9, 0.9), ""),
        (["composed"] * 3, (0.8, 0.9, 0.95), "The seeds' composed shares lie from 0.80 to 0.95."),
        (["composed", "mixed"], (0.9, 0.9, 0.9), "The 3 seeds carry 2 different labels."),
        (
            ["composed", "mixed"],
            (0.9, 0.1, 0.1),
            "The 3 seeds carry 2 different labels; their composed shares lie from 0.10 to 0.90.",
        ),
    ],
)
def test_one_setting_is_told_in_words_of_its_own(labels, shares, said):
    source = mixed_up(synthetic(axes=()), *labels)
    cells = [
        {**row, "inferential_accuracy": found}
        for row, found in zip(source.cells, shares, strict=True)
    ]
    sentences = head_of(replace(source, cells=cells)).sentences
    assert "The one setting" not in " ".join(sentences)
    assert "1 cell" not in " ".join(sentences)
    assert (sentences[-1] if said else "") == said
    assert any("lie" in sentence for sentence in sentences) == ("lie" in said)


def test_crossed_seeds_are_told_as_runs():
    source = synthetic(axes=(), crossed={"init": (1, 2), "order": (1, 2)})
    cells = [{**row, "inferential_accuracy": 0.9} for row in source.cells]
    text = head_of(mixed_up(replace(source, cells=cells), "composed", "mixed")).sentences[-1]
    assert text == "The 4 runs carry 2 different labels."


def test_a_changed_preset_says_what_was_changed():
    source = replace(synthetic(name="mine"), changed="Changed from the preset laptop: steps.")
    assert head_of(source).cautions == ("Changed from the preset laptop: steps.",)


def test_a_run_with_a_mirrored_exception_counts_as_composed_and_says_so():
    excepted = relabelled(synthetic(), "composed_with_mirrored_exception")
    tail = "but for an exception carried over to its mirror image"
    assert head_of(excepted).title == f"All 72 runs composed, {tail}"
    cells = [{**row, "label": "mixed"} for row in excepted.cells]
    cells[3] |= {"label": "composed_with_mirrored_exception"}
    assert head_of(replace(excepted, cells=cells)).title == f"1 of 72 runs composed, {tail}"
    cells[4] |= {"label": "composed"}
    cells[5] |= {"label": "mirrored_lookup"}
    both = head_of(replace(excepted, cells=cells)).title
    assert both == f"2 of 72 runs composed, 1 of them {tail}; 1 mirrored"
    one = relabelled(synthetic(axes=(), n_seeds=1), "composed_with_mirrored_exception")
    assert head_of(one).title == f"The one run composed, {tail}"


def test_without_a_fitted_run_composing_is_not_judged():
    tail = "of 72 runs; composing cannot be judged"
    assert head_of(relabelled(synthetic(), "not_trained")).title == f"Not trained: 72 {tail}"
    assert head_of(relabelled(synthetic(), "diverged")).title == f"Not trained: 72 {tail}"
    assert head_of(relabelled(synthetic(), "data_memorized")).title == f"Not fitted: 72 {tail}"


def test_where_there_is_a_probe_its_share_stands_beside_that_of_the_pair():
    gammas = Axis("gamma", "gamma", (0.6, 0.8))
    source = synthetic(axes=(gammas,), mirrored=True)
    shares = {0.6: (0.93, 0.42), 0.8: (0.07, 0.91)}
    cells = [
        {**row, "inferential_accuracy": shares[row["gamma"]][0]}
        | {"probe_accuracy": shares[row["gamma"]][1]}
        for row in source.cells
    ]
    text = " ".join(head_of(replace(source, cells=cells)).sentences).replace("\u00a0", " ")
    half = "the median composed share is above one half at"
    assert f"On the unseen pair (4, 3) {half} γ 0.6." in text
    assert f"On the probe {half} γ 0.8." in text


def test_a_probe_without_an_axis_is_told_as_a_number():
    source = synthetic(axes=(), n_seeds=1, mirrored=True)
    cells = [{**row, "probe_accuracy": 0.42} for row in source.cells]
    text = " ".join(head_of(replace(source, cells=cells)).sentences)
    assert "On the probe the composed share is 0.42." in text
    text = " ".join(head_of(synthetic(axes=(), mirrored=True)).sentences)
    assert "On the probe the median composed share is 0." in text


def test_what_could_not_be_read_is_a_caution():
    source = replace(synthetic(name="mine"), missing=("The timing cannot be read.",))
    assert head_of(source).cautions == ("The timing cannot be read.",)


def test_counts_of_labels_add_up():
    source = synthetic()
    counted = head_of(source).sentences[0]
    assert sum(int(word) for word in counted.split() if word.isdigit()) == 72


def test_the_border_is_where_the_median_passes_one_half():
    source = synthetic(axes=(Axis("gamma", "gamma", (0.3, 0.5, 0.7)),))
    shares = {0.3: 0.1, 0.5: 0.4, 0.7: 0.8}
    cells = [{**row, "inferential_accuracy": shares[row["gamma"]]} for row in source.cells]
    sentences = head_of(replace(source, cells=cells)).sentences
    assert "The median composed share is above one half at γ\u00a00.7." in sentences


def test_rows_that_never_pass_are_counted():
    source = synthetic()
    cells = [
        {**row, "inferential_accuracy": float(row["depth"] == 2 and row["gamma"] > 0.65)}
        for row in source.cells
    ]
    text = " ".join(head_of(replace(source, cells=cells)).sentences).replace("\u00a0", " ")
    assert "at γ 0.7 to 1.0 (depth 2); in 2 rows nowhere" in text


def test_a_band_is_not_told_as_a_border():
    source = synthetic(axes=(Axis("gamma", "gamma", (0.3, 0.4, 0.5, 0.6, 0.7)),))
    band = (0.3, 0.5, 0.6)
    cells = [{**row, "inferential_accuracy": float(row["gamma"] in band)} for row in source.cells]
    text = " ".join(head_of(replace(source, cells=cells)).sentences)
    assert "above one half at γ\u00a00.3, 0.5 to 0.6." in text


def test_many_rows_are_summed_up():
    axes = (*PHASE, Axis("weight_decay", "weight_decay", (0.01, 0.1)))
    source = synthetic(axes=axes)
    cells = [{**row, "inferential_accuracy": float(row["gamma"] > 0.95)} for row in source.cells]
    text = " ".join(head_of(replace(source, cells=cells)).sentences)
    assert "above one half in 6 of 48 cells" in text


def test_the_spread_names_the_widest_cell():
    source = synthetic()
    cells = [{**row, "inferential_accuracy": 0.9, "label": "composed"} for row in source.cells]
    cells[5] |= {"inferential_accuracy": 0.1, "label": "mixed"}
    text = head_of(replace(source, cells=cells)).sentences[-1]
    where = f"γ\u00a0{cells[5]['gamma']}, depth\u00a0{cells[5]['depth']}"
    assert text.startswith("Seeds carry different labels in 1 of 24 cells")
    assert f"furthest apart at {where}: 0.10 to 0.90." in text


def test_one_seed_says_that_nothing_is_known_of_seeds():
    assert "how far seeds differ is not known" in head_of(synthetic(n_seeds=1)).sentences[-1]


def test_cautions():
    assert "not evidence for a claim" in head_of(synthetic()).cautions[0]
    assert head_of(synthetic(name="mine")).cautions == ()
    unfinished = head_of(synthetic(name="mine", share_done=0.5)).cautions
    assert unfinished == ("The study is not finished: 36 of 72 runs are in.",)
    maxima = head_of(synthetic(name="mine", lrs=(1e-4, 2e-4))).cautions
    assert "two maxima of one cell may come from different runs" in maxima[0]


def test_a_study_of_chosen_learning_rates_says_how_they_were_chosen():
    text = " ".join(head_of(synthetic(name="mine", lrs=(1e-4, 2e-4))).sentences)
    assert "By label, at the learning rate chosen by training loss" in text

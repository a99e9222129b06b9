from __future__ import annotations

from dataclasses import replace

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
    assert "On the probe the median composed share is 0.42." in text


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

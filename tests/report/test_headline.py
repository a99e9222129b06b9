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
    assert mirrored == "None of 72 runs composed, 72 mirrored"
    excepted = head_of(relabelled(synthetic(), "composed_with_mirrored_exception")).title
    assert excepted == "None of 72 runs composed, 72 with a mirrored exception"
    assert head_of(synthetic(share_done=0)).title == "No run has finished yet"
    one = synthetic(axes=(), n_seeds=1)
    assert head_of(relabelled(one, "composed")).title == "The one run composed"
    assert head_of(relabelled(one, "mixed")).title == "The one run did not compose"


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

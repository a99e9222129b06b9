from __future__ import annotations

import itertools

import pytest

from initrate.report._colours import LABELS, LEVELS, contrast, css, ink, label_style, level, ramp

STEPS = [step / (LEVELS - 1) for step in range(LEVELS)]


@pytest.mark.parametrize("dark", [False, True])
def test_the_ramp_changes_its_luminance_one_way_only(dark: bool):
    ground = "#ffffff" if not dark else "#000000"
    contrasts = [contrast(ramp(share, dark=dark), ground) for share in STEPS]
    # More always stands out more from the page, also printed in grey or to a colour-blind eye.
    assert all(a < b for a, b in itertools.pairwise(contrasts))


@pytest.mark.parametrize("dark", [False, True])
def test_values_can_be_read_on_every_step_of_the_ramp(dark: bool):
    colours = [ramp(share, dark=dark) for share in STEPS]
    assert min(contrast(ink(colour), colour) for colour in colours) >= 4.5


def test_letters_and_names_tell_labels_apart_without_colour():
    assert len({style.letter for style in LABELS.values()}) == len(LABELS)
    assert len({style.name for style in LABELS.values()}) == len(LABELS)


def test_letters_can_be_read_on_their_marks():
    for style in LABELS.values():
        for colour in (style.light, style.dark):
            assert contrast(ink(colour), colour) >= 4.5


def test_every_label_of_a_study_has_its_own_mark():
    from initrate.study import LABELS as labels

    assert set(labels) == set(LABELS)


def test_an_unknown_label_keeps_its_name():
    assert label_style("new_label").letter == "?"
    assert label_style("new_label").name == "new label"


def test_shares_outside_the_range_stay_on_the_ramp():
    assert (level(-0.1), level(1.2)) == (0, LEVELS - 1)
    assert (ramp(-1), ramp(2)) == (ramp(0), ramp(1))


def test_the_style_sheet_has_every_step_twice():
    text = css()
    assert all(text.count(f".v{step}{{") == 2 for step in range(LEVELS))
    assert all(text.count(f".label-{name}{{") == 2 for name in LABELS)

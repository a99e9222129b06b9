"""What a search asks for: resolved from a study, and refused in one line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from initrate.boundary import first_batch, operations_by_cell, plan_search
from initrate.errors import InputError
from initrate.study import StudyConfig, cost, grid
from tests.study.conftest import small_study


@pytest.fixture
def config() -> StudyConfig:
    return small_study()


def test_the_full_grid_is_the_range_in_steps_of_the_resolution(config: StudyConfig):
    search = plan_search(config, resolution=0.05)
    assert search.values == (0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8)
    assert search.rows == (1, 2)
    assert search.shape == (2, 9, 2)
    assert len(grid(search.study)) == 36
    assert (search.place(0), search.place(2.5)) == (0.4, 0.525)


@pytest.mark.parametrize(
    ("axes", "given", "resolution", "n"),
    [
        ({"gamma": (0.4, 0.5, 0.6)}, {}, 0.05, 5),
        ({"gamma": (0.4, 0.42, 0.5)}, {}, 0.02, 6),
        ({"gamma": (0.4, 0.6)}, {"resolution": 0.1}, 0.1, 3),
        ({"lr": (1e-3, 2e-3, 4e-3)}, {"axis": "lr"}, 1e-3, 4),
        ({"weight_decay": (0.0, 1.0)}, {"axis": "training.weight_decay"}, 0.05, 21),
        ({"depth": (1, 2, 5)}, {"axis": "depth", "by": "gamma"}, 1, 5),
    ],
)
def test_the_usual_resolution(
    config: StudyConfig, axes: dict[str, Any], given: dict[str, Any], resolution: float, n: int
):
    search = plan_search(replace(config, axes=axes), **given)
    assert search.resolution == resolution
    assert len(search.values) == n
    (values,) = axes.values()
    assert (search.values[0], search.values[-1]) == (values[0], values[-1])


def test_a_second_axis_that_is_none_is_the_value_that_all_cells_have(config: StudyConfig):
    search = plan_search(replace(config, axes={"gamma": (0.4, 0.6)}))
    assert (search.by, search.rows) == ("depth", (1,))


def test_an_axis_of_one_value_is_a_field(config: StudyConfig):
    axes = {"gamma": (0.4, 0.6), "lr": (2e-3,), "depth": (1, 2)}
    search = plan_search(replace(config, axes=axes))
    assert list(search.study.axes) == ["gamma", "depth"]
    assert search.study.training.lr == 2e-3


BAD = {
    "unknown axis": ({"axis": "gama"}, "did you mean 'gamma'"),
    "unknown second axis": ({"by": "deph"}, "did you mean 'depth'"),
    "axis and by are one": ({"by": "rule.gamma"}, "axis and by are both gamma"),
    "too few values": ({"resolution": 0.4}, "has 2 values 0.4 apart: expected 3 to 100"),
    "too many values": ({"resolution": 1e-3}, "expected 3 to 100"),
    "resolution of zero": ({"resolution": 0}, "expected a number above zero"),
    "negative resolution": ({"resolution": -0.1}, "expected a number above zero"),
    "resolution that is no number": ({"resolution": "fine"}, "expected a number above zero"),
    "resolution that is not finite": ({"resolution": float("inf")}, "a number above zero"),
    "resolution that misses": ({"resolution": 0.15}, "steps of 0.15 miss 0.8"),
    "confidence of a half": ({"confidence": 0.5}, "between 0.5 and 1"),
    "confidence of one": ({"confidence": 1}, "between 0.5 and 1"),
    "confidence that is a word": ({"confidence": "high"}, "between 0.5 and 1"),
    "missed of all": ({"missed": 1.0}, "between 0 and 0.5"),
    "unknown label": ({"labels": ["compsed"]}, "did you mean 'composed'"),
    "no label": ({"labels": []}, "names of labels"),
    "a label as text": ({"labels": "composed"}, "names of labels"),
    "width of zero": ({"width": 0}, "width is 0"),
    "axis that is a word": ({"axis": "activation"}, "no number"),
    "axis that is a switch": ({"axis": "tied"}, "no number"),
    "axis of one value": ({"axis": "weight_decay"}, "--set weight_decay=A:B:STEP"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(case: str, config: StudyConfig):
    given, expected = BAD[case]
    with pytest.raises(InputError, match=r"\A[^\n]+\Z") as raised:
        plan_search(config, **given)
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"axes": {"gamma": (0.4, 0.6), "lr": (1e-3, 2e-3)}}, "2 values of lr beside gamma and"),
        ({"axes": {"gamma": (0.4,)}}, "--gamma A:B:STEP"),
        ({"axes": {"gamma": (0.4, 0.8)}, "protocol": "best-lr", "lrs": (1e-3,)}, "best-lr"),
        ({"axes": {"gamma": (0.4, 0.8)}, "seed_axes": {"init": (1, 2)}}, "crossed seeds"),
    ],
)
def test_studies_without_one_label_a_cell_are_refused(
    changes: dict[str, Any], expected: str, config: StudyConfig
):
    with pytest.raises(InputError, match=r"\A[^\n]+\Z") as raised:
        plan_search(replace(config, **changes))
    assert expected in str(raised.value)


def test_whole_numbers_have_whole_steps(config: StudyConfig):
    deep = replace(config, axes={"depth": (1, 7)})
    assert plan_search(deep, axis="depth", by="gamma", resolution=2).values == (1, 3, 5, 7)
    with pytest.raises(InputError, match="whole numbers"):
        plan_search(deep, axis="depth", by="gamma", resolution=1.5)


def test_operations_are_those_of_each_cell(config: StudyConfig):
    search = plan_search(config)
    table = operations_by_cell(search)
    for point in grid(search.study):
        row = search.rows.index(point.axes["depth"])
        column = search.values.index(point.axes["gamma"])  # pyright: ignore[reportArgumentType]
        assert table[row, column] == cost(point.cell).operations


def test_the_first_batch_is_of_the_first_row(config: StudyConfig):
    batch = first_batch(plan_search(config))
    assert batch.row == 0
    assert batch.values[0] <= 1 and batch.values[-1] >= 7

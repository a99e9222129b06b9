"""Windows of draws: the same values, however a tensor is cut."""

from __future__ import annotations

import numpy as np
import pytest

from initrate.rule import BLOCK, PlanRow, Rule, WeightRecord, draw_window, named_rule, plan_records
from initrate.rule import windows as windows_of


def row(name: str = "fc.weight", rule: Rule | None = None, shape=(300, 500)) -> PlanRow:
    record = WeightRecord(name, shape, ("mlp_in",), d_in=64)
    return plan_records([record], rule or Rule(gamma=0.5)).rows[0]


WHOLE = draw_window(row(), 3, 0, 150_000)


@pytest.mark.parametrize("start", [0, 1, 999, BLOCK - 1, BLOCK, BLOCK + 1])
@pytest.mark.parametrize("size", [1, 2, 1000, BLOCK])
def test_a_window_has_the_values_of_the_whole(start: int, size: int):
    assert (draw_window(row(), 3, start, size) == WHOLE[start : start + size]).all()


@pytest.mark.parametrize("most", [1000, 65_536, 10**9])
def test_windows_fill_the_tensor(most: int):
    parts = [draw_window(row(), 3, start, size) for start, size in windows_of(row(), most)]
    assert max(part.size for part in parts) <= most
    assert (np.concatenate(parts) == WHOLE).all()


def test_the_std_is_the_rules():
    assert WHOLE.dtype == np.float32
    assert WHOLE.std() == pytest.approx(0.125, rel=5 / np.sqrt(2 * WHOLE.size))
    assert abs(WHOLE.mean()) < 5 * 0.125 / np.sqrt(WHOLE.size)


@pytest.mark.parametrize("other", [(row("fc2.weight"), 3), (row(), 4)], ids=["name", "seed"])
def test_name_and_seed_give_other_values(other: tuple[PlanRow, int]):
    values = draw_window(*other, 0, 10_000)
    assert abs(np.corrcoef(values, WHOLE[:10_000])[0, 1]) < 0.05
    assert not (values == WHOLE[:10_000]).any()


def test_gamma_only_multiplies():
    small = draw_window(row(rule=Rule(gamma=0.8)), 3, 0, 1000).astype(np.float64)
    assert small == pytest.approx(WHOLE[:1000] * 64**-0.3, rel=1e-6)


def test_uniform_draws_stay_within_their_bound():
    values = draw_window(row(rule=named_rule("torch-default")), 3, 0, 150_000)
    assert np.abs(values).max() <= 0.125
    assert values.std() == pytest.approx(0.125 / np.sqrt(3), rel=0.01)


def test_zero():
    record = WeightRecord("fc.bias", (10,), ("bias",), d_in=64)
    found = draw_window(plan_records([record], Rule()).rows[0], 0, 0, 10)
    assert found.tolist() == [0.0] * 10


@pytest.mark.parametrize(
    ("start", "size"), [(0, 60), (0, 12), (12, 8), (15, 3), (18, 10), (20, 40)]
)
def test_the_row_of_a_padding_token_is_zero_in_every_window(start: int, size: int):
    record = WeightRecord("wte.weight", (6, 10), ("token_embedding",), d_in=10, padding=1)
    values = draw_window(plan_records([record], Rule()).rows[0], 0, start, size)
    expected = [not 10 <= place < 20 for place in range(start, start + size)]
    assert (values != 0).tolist() == expected

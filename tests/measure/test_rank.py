"""Stable rank: against a decomposition."""

from __future__ import annotations

import numpy as np
import pytest

from initrate.errors import InputError
from initrate.measure import random_stable_rank, stable_rank


def by_decomposition(matrix):
    values = np.linalg.svd(matrix.astype(np.float64), compute_uv=False)
    return float((values**2).sum() / values[0] ** 2)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (3, 3), (40, 120), (200, 200)])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_random_matrices(shape, size):
    matrix = (size * np.random.default_rng(0).standard_normal(shape)).astype(np.float32)
    assert stable_rank(matrix) == pytest.approx(by_decomposition(matrix), rel=1e-6)


@pytest.mark.parametrize("rank", [1, 2, 5])
def test_low_rank(rank):
    draws = np.random.default_rng(1)
    matrix = draws.standard_normal((50, rank)) @ draws.standard_normal((rank, 30))
    found = stable_rank(matrix)
    assert found == pytest.approx(by_decomposition(matrix), rel=1e-6)
    assert found <= rank + 1e-9


def test_a_random_matrix_is_near_its_baseline():
    matrix = np.random.default_rng(2).standard_normal((300, 500))
    assert stable_rank(matrix) == pytest.approx(random_stable_rank(300, 500), rel=0.05)


def test_edges():
    assert stable_rank(np.zeros((3, 4))) == 0
    assert stable_rank(np.zeros((0, 4))) == 0
    with pytest.raises(InputError, match="3 axes"):
        stable_rank(np.zeros((2, 2, 2)))
    with pytest.raises(InputError, match="not finite"):
        stable_rank(np.array([[np.nan]]))

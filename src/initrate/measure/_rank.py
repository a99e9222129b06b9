"""Stable rank: how many directions of a matrix carry its size."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from initrate.errors import InputError

_MOST_STEPS = 64
_CLOSE = 1e-9


def stable_rank(matrix: NDArray[np.floating]) -> float:
    """Return ||W||_F^2 / ||W||_2^2 of a matrix [m, n]: 1 of rank one, at most min(m, n); 0 of zero.

    >>> round(stable_rank(np.outer([1.0, 2.0], [3.0, 4.0])), 6), round(stable_rank(np.eye(3)), 6)
    (1.0, 3.0)
    """
    if matrix.ndim != 2:
        raise InputError(f"stable_rank of an array with {matrix.ndim} axes: expected a matrix")
    values = matrix.astype(np.float64)
    largest = float(np.abs(values).max(initial=0.0))
    if not math.isfinite(largest):
        raise InputError("stable_rank of values that are not finite")
    if largest == 0:
        return 0.0
    # Squares of very small or large values would leave the range of a float.
    values /= largest
    return float(np.sum(values**2)) / _largest_square(values)


def random_stable_rank(rows: int, columns: int) -> float:
    """Return the stable rank of a large matrix of independent draws of one std.

    Its squared Frobenius norm is rows * columns, and its norm sqrt(rows) + sqrt(columns).

    >>> random_stable_rank(100, 100)
    25.0
    """
    return rows * columns / (math.sqrt(rows) + math.sqrt(columns)) ** 2


def _largest_square(matrix: NDArray[np.float64]) -> float:
    """Return the largest eigenvalue of W^T W, by the method of Lanczos.

    A matrix of thousands of rows takes tens of products with vectors, not a decomposition. All
    vectors are kept orthogonal, so that the values found are no larger than the true one.
    """
    rows, columns = matrix.shape
    tall = matrix if rows >= columns else matrix.T
    side = tall.shape[1]
    vector = np.random.default_rng(0).standard_normal(side)
    basis: list[NDArray[np.float64]] = []
    diagonal: list[float] = []
    beside: list[float] = []
    found = 0.0
    for _ in range(min(side, _MOST_STEPS)):
        vector /= np.linalg.norm(vector)
        basis.append(vector)
        image = tall.T @ (tall @ vector)
        diagonal.append(float(image @ vector))
        known = np.stack(basis)
        # Twice: once leaves what rounding put in.
        image -= known.T @ (known @ image)
        image -= known.T @ (known @ image)
        before, found = found, _largest_eigenvalue(diagonal, beside)
        length = float(np.linalg.norm(image))
        if length <= _CLOSE * found or abs(found - before) <= _CLOSE * found:
            break
        beside.append(length)
        vector = image
    return found


def _largest_eigenvalue(diagonal: list[float], beside: list[float]) -> float:
    three = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    return float(np.linalg.eigvalsh(three)[-1])

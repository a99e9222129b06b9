"""Measures of weights: arrays in, numbers out. NumPy alone."""

from initrate.measure._interval import largest_expected, std_interval
from initrate.measure._moments import Moments, moments
from initrate.measure._rank import random_stable_rank, stable_rank

__all__ = [
    "Moments",
    "largest_expected",
    "moments",
    "random_stable_rank",
    "stable_rank",
    "std_interval",
]

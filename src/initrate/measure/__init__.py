"""Measures of weights: arrays in, numbers out. NumPy alone."""

from initrate.measure._interval import largest_expected, std_interval
from initrate.measure._moments import Moments, moments

__all__ = ["Moments", "largest_expected", "moments", "std_interval"]

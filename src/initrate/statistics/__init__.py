"""Statistics of few seeds and many answers."""

from initrate.statistics._median import MedianInterval, median_coverage, median_interval
from initrate.statistics._proportion import wilson

__all__ = ["MedianInterval", "median_coverage", "median_interval", "wilson"]

"""The formula itself: std = d_in ** -gamma, and back."""

from __future__ import annotations

import math

from initrate.errors import InputError
from initrate.rule._checks import finite_number, positive_number, whole_number


def std_from_gamma(gamma: float, d_in: int) -> float:
    """Return the standard deviation d_in ** -gamma (arXiv 2405.05409): larger gamma, smaller std.

    >>> round(std_from_gamma(0.8, 400), 5)
    0.00829
    """
    gamma = finite_number("gamma", gamma)
    d_in = whole_number("d_in", d_in, least=1)
    try:
        std = float(d_in) ** -gamma
    except OverflowError:
        std = math.inf
    if not math.isfinite(std) or std == 0:
        what, cure = ("0", "smaller") if std == 0 else ("no finite number", "larger")
        raise InputError(
            f"gamma is {gamma} with d_in {d_in}: the std d_in^-gamma is {what}; give a {cure} gamma"
        )
    return std


def gamma_from_std(std: float, d_in: int) -> float:
    """Return the gamma whose std at this d_in is `std`: -ln(std) / ln(d_in).

    >>> round(gamma_from_std(0.02, 768), 3)
    0.589
    """
    std = positive_number("std", std)
    # At d_in 1 every gamma gives std 1, so that no gamma can be told from a std.
    d_in = whole_number("d_in", d_in, least=2)
    return -math.log(std) / math.log(d_in) + 0.0

"""The peak: how fast the machine multiplies two matrices of such sizes, at this very moment."""

from __future__ import annotations

import time
from collections.abc import Iterable

import torch

from initrate.bench._result import Product
from initrate.bench._sizes import Size

_WIDTHS = (512, 1024, 2048)


def products(size: Size) -> tuple[Product, ...]:
    """Return the products to try: squares, and the model's own largest one.

    >>> from initrate.bench import SIZES
    >>> products(SIZES["paper-2"])[-1]
    (18432, 400, 1200)
    """
    own = (size.batch * size.length, size.model.d_model, size.model.d_ff)
    return (*((width, width, width) for width in _WIDTHS), own)


def fastest(tried: Iterable[Product], *, threads: int) -> Product:
    """Return the product that comes out fastest."""
    return max(tried, key=lambda product: peak_gflops(product, threads=threads))


def peak_gflops(product: Product, *, threads: int, seconds: float = 0.2) -> float:
    """Return 1e9 operations a second of a float32 product, the best of a short while."""
    rows, inner, columns = product
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        left, right = torch.ones(rows, inner), torch.ones(inner, columns)
        out = torch.empty(rows, columns)
        torch.mm(left, right, out=out)
        best, end = float("inf"), time.perf_counter() + seconds
        while best == float("inf") or time.perf_counter() < end:
            start = time.perf_counter()
            torch.mm(left, right, out=out)
            best = min(best, time.perf_counter() - start)
    finally:
        torch.set_num_threads(before)
    return 2 * rows * inner * columns / best / 1e9

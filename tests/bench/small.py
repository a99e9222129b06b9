"""The sizes of the benchmark in small: every switch stays as it is, widths and counts shrink."""

from __future__ import annotations

from dataclasses import replace

from initrate.bench import SIZES, Size


def small(name: str, *, steps: int = 1) -> Size:
    """Return a size with the model (two layers), the batch and the vocabulary made small."""
    size = SIZES[name]
    heads = min(size.model.n_heads, 2)
    model = replace(
        size.model, n_layers=2, d_model=16, n_heads=heads, d_k=8, d_v=8, d_ff=24, max_positions=12
    )
    return replace(size, model=model, n_models=2, batch=32, vocabulary=13, length=7, steps=steps)


KINDS = list({small(name): name for name in reversed(SIZES)}.values())
"""A name for each of the sizes that still differ when they are small."""

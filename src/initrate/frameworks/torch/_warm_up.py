"""A suggested warm-up: a rule of thumb, told with its reasons."""

from __future__ import annotations

import math

SHARE = 0.05
"""Of all steps: 3,700 of 77,700 in arXiv 2405.05409 and 50 of 1,050 epochs in 2501.08537."""


def warm_up(*, steps: int | None, beta2: float, plateau: bool) -> tuple[int, str]:
    """Return how many steps the learning rate should rise for, and why.

    >>> warm_up(steps=10_000, beta2=0.999, plateau=False)[0]
    500
    >>> warm_up(steps=10_000, beta2=0.999, plateau=True)[0]
    2000
    """
    # Rounded first: 2 / (1 - 0.999) is a hair above 2000.
    memory = math.ceil(round(2 / (1 - beta2), 6))
    text = (
        f"Adam's estimate of the gradient's size has seen enough after 2 / (1 - beta2) = {memory} "
        "steps (arXiv 1910.04209)"
    )
    if steps is None:
        found = 2 * memory if plateau else memory
    else:
        share = math.ceil(SHARE * steps)
        # However small the weights, most of the steps are for training at the full rate.
        found = min(max(memory, share), math.ceil(steps / 4)) if plateau else min(memory, share)
        text += f"; the papers on the initialization rate warm up for 5 % of all steps, {share}"
    if plateau:
        taken = "twice the first" if steps is None else "the longer, at most a quarter of all steps"
        text += (
            f". Taken is {taken}: on a plateau the gradient is small and grows suddenly at its "
            "end, when an estimate from the plateau is far too small"
        )
    else:
        text += f". Taken is {'that' if steps is None else 'the shorter'}: no plateau was found"
    return found, f"{text}. This is a rule of thumb, not a measurement."

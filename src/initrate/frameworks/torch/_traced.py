"""What a trace adds to the layouts: axes where none are known, and a check where they are."""

from __future__ import annotations

import math
from dataclasses import replace

from initrate.frameworks._layout import Axes, Part
from initrate.frameworks.torch._trace_operations import TABLES
from initrate.frameworks.torch._trace_use import Trace, Use
from initrate.rule import DENSE_ROLES, EMBEDDING_ROLES

Shape = tuple[int, ...]


def traced_axes(trace: Trace, name: str, shape: Shape) -> Axes | None:
    """Return the axes that a trace finds of a parameter without a layout, or None.

    Only what every use agrees on, and only where nothing changes the values on the way: of a
    parameter that goes through a softmax, the std of the parameter is not that of the map.

    >>> use = Use("contraction", "mm", axes=(0,), d_in=8, kept=(1,))
    >>> traced_axes(Trace({"w": (8, 64)}, {"w": (use,)}), "w", (8, 64)).words
    ('in', 'out')
    """
    uses = trace.uses.get(name, ())
    if not uses or any(use.through for use in uses):
        return None
    kinds = {use.kind for use in uses}
    if kinds == {"contraction"}:
        return _map(uses, shape)
    if "table" in kinds and kinds <= {"table", "contraction"}:
        return _table(uses, shape)
    return None


def _map(uses: tuple[Use, ...], shape: Shape) -> Axes | None:
    """Return the axes of a map, if all products add up the same axes."""
    if len({(use.axes, use.d_in) for use in uses}) > 1:
        return None
    added, d_in = uses[0].axes, uses[0].d_in or 1
    if not added:  # One input: its axis is the only one with one place, or it is not known.
        ones = [axis for axis, side in enumerate(shape) if side == 1]
        if len(ones) != 1:
            return None
        added = (ones[0],)
    places = math.prod(shape[axis] for axis in added)
    kept = {axis for use in uses for axis in use.kept}
    if places % d_in:
        return None
    words = tuple(
        "in" if axis in added else "out" if axis in kept or side == 1 else "copy"
        for axis, side in enumerate(shape)
    )
    convolution = all(use.operation == "convolution" for use in uses)
    part = Part(("convolution",) if convolution else DENSE_ROLES)
    return Axes(words, parts=(part,), divide_d_in=places // d_in)


def _table(uses: tuple[Use, ...], shape: Shape) -> Axes | None:
    """Return the axes of a table, whose width a product may add up too."""
    rows = {use.axes for use in uses if use.kind == "table"}
    if len(rows) != 1:
        return None
    row = rows.pop()
    words = tuple("row" if axis in row else "width" for axis in range(len(shape)))
    width = tuple(axis for axis, word in enumerate(words) if word == "width")
    if not width or any(use.axes != width for use in uses if use.kind == "contraction"):
        return None
    looked_up = all(use.operation in TABLES for use in uses if use.kind == "table")
    # What an index picks and a sum adds may be a position as well.
    roles = ("token_embedding",) if looked_up else ("token_embedding", "position")
    return Axes(words, parts=(Part(roles),))


def checked_axes(axes: Axes, trace: Trace, name: str, shape: Shape) -> Axes:
    """Return known axes, with a reason to refuse them where a trace reads them otherwise.

    A table is what it is, whatever else adds it up. Where an operation is not understood, the
    layout stands.

    >>> use = Use("contraction", "mm", axes=(0,), d_in=8, kept=(1,))
    >>> trace = Trace({"w": (8, 64)}, {"w": (use,)})
    >>> checked_axes(Axes(("out", "in")), trace, "w", (8, 64)).refuse
    'has two readings: layout says d_in 64, the example contracts 8 along axis 0 (mm)'
    """
    uses = trace.uses.get(name, ())
    roles = {role for part in axes.parts for role in part.roles}
    known = bool(axes.words) and not (axes.keep or axes.zero or axes.refuse)
    if not known or (roles and roles <= set(EMBEDDING_ROLES)):
        return axes
    if any(use.kind == "lost" for use in uses):
        return axes
    sizes = {use.d_in for use in uses if use.kind == "contraction"}
    d_in = axes.d_in(shape)
    if sizes <= {d_in}:
        return axes
    said = trace.describe(name)
    return replace(axes, refuse=f"has two readings: layout says d_in {d_in}, the example {said}")

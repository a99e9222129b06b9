"""Apply: the values of a rule into a model, all of them or none."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal, get_args

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from initrate.errors import InputError
from initrate.errors import unknown as unknown_word
from initrate.frameworks.torch._fill import part_view, pieces, remembered, write_piece
from initrate.frameworks.torch._layout import Layout
from initrate.frameworks.torch._measure import measure_tensors
from initrate.frameworks.torch._plan import plan_tensors
from initrate.frameworks.torch._sharded import local_region
from initrate.frameworks.torch._trained import refuse_trained
from initrate.frameworks.torch._walk import ModelTensor
from initrate.rule import Audit, PlanRow, Rule, Unknown, draw_window, make_audit

Mode = Literal["draw", "rescale"]


def apply(
    model: nn.Module,
    *,
    gamma: float | None = None,
    rule: Rule | None = None,
    seed: int = 0,
    mode: Mode = "draw",
    unknown: Unknown = "refuse",
    layouts: Sequence[Layout] = (),
    example: object = None,
    include: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    force: bool = False,
    waive: Sequence[str] = (),
) -> Audit:
    """Draw the weights of a model by a rule, in place, and return what was then measured.

    Every value depends on (seed, name, place) alone. The same rule and seed again change nothing.
    With `mode="rescale"` the values that are there are multiplied to the std of the rule. A model
    that looks trained, with a norm whose gain is not constant, is refused unless `force` is given.
    Either all tensors are drawn or, with an InputError, none.

    >>> model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    >>> apply(model, gamma=0.8, seed=0).ok
    True
    """
    if mode not in get_args(Mode):
        raise unknown_word("mode", mode, get_args(Mode))
    plan, tensors = plan_tensors(
        model,
        gamma=gamma,
        rule=rule,
        unknown=unknown,
        layouts=layouts,
        example=example,
        include=include,
        exclude=exclude,
    )
    plan.raise_for_refused()
    _check(tensors)
    if not force:
        refuse_trained(tensors)
    rows = iter(plan.rows)
    with torch.no_grad(), ThreadPoolExecutor(torch.get_num_threads()) as pool:
        for tensor in tensors:
            _write(tensor, [next(rows) for _ in tensor.records], seed, mode, pool)
    return make_audit(plan, measure_tensors(tensors), rule=plan.rule, waive=waive)


def _check(tensors: Sequence[ModelTensor]) -> None:
    """Refuse what cannot be written, before anything is."""
    for tensor in tensors:
        name = tensor.records[0].name
        if tensor.tensor.is_meta:
            raise InputError(
                f"{name!r} is on the meta device and has no values: build the model on a real "
                "device, or take plan() alone"
            )
        if is_lazy(tensor.tensor):
            raise InputError(f"{name!r} has no shape yet: run the model once before apply")


def _write(
    tensor: ModelTensor, rows: list[PlanRow], seed: int, mode: Mode, pool: ThreadPoolExecutor
) -> None:
    """Write all parts of one tensor."""
    target = tensor.tensor.detach()
    if tensor.through is not None:
        target = target.clone()
    local, whole, offset = local_region(target)
    changed = False
    for row in rows:
        if row.action not in ("draw", "zero"):
            continue
        view = part_view(local, row.record.where)
        if mode == "rescale" and row.action == "draw":
            changed |= _rescale(view, row)
            continue
        draw = remembered(partial(draw_window, row, seed))
        jobs = pieces(view) if row.record.where else pieces(view, 0, whole, offset)
        written = pool.map(
            lambda job, draw=draw: write_piece(job[0], draw(job[1], job[0].numel())), jobs
        )
        changed |= any(list(written))
    if tensor.through is not None and changed:
        tensor.through.assign(target)


def _rescale(view: torch.Tensor, row: PlanRow) -> bool:
    """Multiply the values to the std of the rule."""
    assert row.std is not None
    std = float(view.double().pow(2).mean().sqrt())
    if std == 0:
        raise InputError(f"{row.name!r} is zero: it cannot be rescaled; draw it")
    view.mul_(row.std / std)
    return True

"""Apply: the values of a rule into a model, all of them or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, get_args

import torch
from torch import nn

from initrate.errors import InputError
from initrate.errors import unknown as unknown_word
from initrate.frameworks._layout import Layout
from initrate.frameworks._reading import reading
from initrate.frameworks.torch._fill import Piece, write_piece
from initrate.frameworks.torch._flags import mark_initialized, write_down
from initrate.frameworks.torch._materialize import check_device, materialize_model
from initrate.frameworks.torch._measure import Job, Touch, is_measurable, run_jobs
from initrate.frameworks.torch._multipliers import multipliers
from initrate.frameworks.torch._parametrized import Snapshot, put, take_back
from initrate.frameworks.torch._plan import plan_tensors
from initrate.frameworks.torch._sharded import refuse_gathered, settle
from initrate.frameworks.torch._trained import refuse_trained
from initrate.frameworks.torch._walk import ModelTensor
from initrate.frameworks.torch._writable import (
    TensorRows,
    is_written,
    refuse_lazy,
    refuse_unscalable,
    refuse_unwritable,
    tensor_rows,
)
from initrate.measure import Moments
from initrate.rule import Audit, Plan, PlanRow, Rule, Unknown, draw_window, make_audit, unit_normal
from initrate.rule._choice import needed_rule

Mode = Literal["draw", "rescale"]


def apply(
    model: nn.Module,
    *,
    gamma: float | None = None,
    rule: Rule | str | None = None,
    gamma_by_role: Mapping[str, float] | None = None,
    seed: int = 0,
    mode: Mode = "draw",
    unknown: Unknown = "refuse",
    layouts: Sequence[Layout] = (),
    example: object = None,
    include: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    force: bool = False,
    materialize: str | torch.device | None = None,
    waive: Sequence[str] = (),
) -> Audit:
    """Draw the weights of a model by a rule, in place, and return what was then measured.

    Every value depends on (seed, name, place) alone: neither on threads, nor on how the model is
    wrapped or sharded. The same rule and seed again change nothing. Either all tensors are drawn
    or, with an InputError, none. An interrupt from outside can end it half-way; the same call
    again completes it.

    With `mode="rescale"` the values that are there are multiplied to the std of the rule. A model
    that looks trained, with a norm whose gain is not constant, is refused unless `force` is given.

    A model on the meta device is refused, or put on a device by `materialize="cpu"`: what the rule
    keeps, and the buffers, then come from the model's own `_init_weights` (transformers) or
    `reset_parameters`. Its parameters are new objects: make the optimizer afterwards.

    Models of transformers are marked, so that `init_weights`, `post_init`,
    `resize_token_embeddings` and saving with `from_pretrained` leave the draw as it is. So does
    `model.apply(model._init_weights)` of transformers 5, whose functions heed the mark of each
    parameter; with an `_init_weights` that writes in place (`weight.data.normal_()`), or in
    transformers 4, it draws anew: apply after it. Rule and seed of a draw of the whole model go
    into `model.config.initrate`, which `save_pretrained` keeps: a later audit needs no gamma.

    Of a model with adapters (PEFT) the frozen base is kept, and so are copies in
    `modules_to_save`; the first map of an adapter is drawn and the second is zero.

    >>> model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    >>> apply(model, gamma=0.8, seed=0).ok
    True
    """
    if mode not in get_args(Mode):
        raise unknown_word("mode", mode, get_args(Mode))
    if not isinstance(force, bool):
        raise InputError(f"force is {force!r}: expected True or False")
    unit_normal(seed, "seed", 0)  # A bad seed is refused here, before anything else is done.
    device = None if materialize is None else check_device(materialize)

    # What is made here has to be of the kind that can be trained, whoever calls.
    with torch.inference_mode(False), torch.no_grad():
        if isinstance(model, nn.Module):
            with reading(model):
                refuse_lazy(model)
                refuse_gathered(model)
                settle(model)
        plan, tensors = plan_tensors(
            model,
            needed_rule(gamma, rule, gamma_by_role),
            unknown=unknown,
            layouts=layouts,
            example=example,
            include=include,
            exclude=exclude,
        )
        plan.raise_for_refused()
        make_audit(Plan(plan.rule, ()), {}, rule=plan.rule, waive=waive)  # Of waive alone.
        pairs = tensor_rows(plan, tensors)
        refuse_unwritable(pairs, materialize=device is not None)
        if not force:
            refuse_trained(pairs)
        touches = _rescaling(pairs) if mode == "rescale" else {}
        undo = _nothing
        if device is not None:
            undo = materialize_model(model, pairs, device, seed)
            pairs = [(_as_it_is_now(tensor), rows) for tensor, rows in pairs]
        try:
            measured = _write(pairs, seed, touches)
        except BaseException:
            undo()
            raise
        mark_initialized(model)
        if mode == "draw" and not include and not exclude:
            write_down(model, plan.rule, seed)
    return make_audit(plan, measured, rule=plan.rule, multipliers=multipliers(tensors), waive=waive)


def _rescaling(pairs: TensorRows) -> dict[str, Touch]:
    """Return what brings the values of each drawn part to the std of the rule."""
    jobs = [
        (row, Job(tensor.tensor.detach(), row.record.where))
        for tensor, rows in pairs
        for row in rows
        if row.action == "draw" and row.size
    ]
    for row, job in jobs:
        if job.tensor.is_meta:
            raise InputError(f"{row.name!r} is on the meta device: there is nothing to rescale")
    found = run_jobs([job for _, job in jobs])
    refuse_unscalable([row for row, _ in jobs], [moments.constant for moments in found])
    touches: dict[str, Touch] = {}
    for (row, job), moments in zip(jobs, found, strict=True):
        assert row.std is not None
        if not moments.finite:
            raise InputError(f"{row.name!r} has values that are not finite: draw it (mode='draw')")
        factor = row.std / moments.std
        # Nearer than the rounding of the type, and of the sums, is as near as it gets.
        if abs(factor - 1) > max(torch.finfo(job.tensor.dtype).eps, 1e-12):
            touches[row.name] = lambda piece, factor=factor: piece.view.mul_(factor)
        else:
            touches[row.name] = _nothing
    return touches


def _nothing(piece: Piece | None = None) -> None:
    """Leave the values as they are."""


def _as_it_is_now(tensor: ModelTensor) -> ModelTensor:
    """Return a tensor of a model as it is after its parameters were replaced."""
    if tensor.through is not None:
        return replace(tensor, tensor=tensor.through.value())
    return replace(tensor, tensor=tensor.owner._parameters[tensor.attribute])


def _touch(row: PlanRow, seed: int, touches: dict[str, Touch]) -> Touch | None:
    """Return what is done to the pieces of a row."""
    if row.name in touches:
        return touches[row.name]
    if row.action not in ("draw", "zero"):
        return None
    return partial(write_piece, draw=partial(draw_window, row, seed))


def _write(pairs: TensorRows, seed: int, touches: dict[str, Touch]) -> dict[str, Moments]:
    """Write all values and return the moments of what is then there, part by part.

    Weights that are computed from other parameters come first: they alone can fail.
    """
    done: list[tuple[ModelTensor, list[Snapshot]]] = []
    try:
        for tensor, rows in pairs:
            if tensor.through is not None and is_written(rows):
                target = tensor.tensor.detach().clone()
                run_jobs([Job(target, r.record.where, _touch(r, seed, touches)) for r in rows])
                done.append((tensor, put(rows[0].record.name, tensor.through, target)))
        jobs = [
            (row.name, Job(_values(tensor), row.record.where, touch))
            for tensor, rows in pairs
            if is_measurable(tensor.tensor)
            for row in rows
            for touch in [None if tensor.through is not None else _touch(row, seed, touches)]
        ]
        found = run_jobs([job for _, job in jobs])
    except BaseException:
        for tensor, snapshots in done:
            assert tensor.through is not None
            take_back(snapshots, tensor.through)
        raise
    return dict(zip((name for name, _ in jobs), found, strict=True))


def _values(tensor: ModelTensor) -> torch.Tensor:
    """Return the values of a tensor as they are now."""
    return (tensor.tensor if tensor.through is None else tensor.through.value()).detach()

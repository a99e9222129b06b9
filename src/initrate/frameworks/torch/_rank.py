"""Stable rank of the matrices of a model, by role."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import torch
from torch import nn

from initrate.frameworks._layout import Layout
from initrate.frameworks.torch._walk import ModelTensor, walk
from initrate.measure import random_stable_rank, stable_rank
from initrate.rule import Slice, WeightRecord


def rank_by_role(model: nn.Module, *, layouts: Sequence[Layout] = ()) -> dict[str, float]:
    """Return by role the median stable rank, each divided by that of a random matrix of its shape.

    Parts of a fused map are measured apart. Only matrices count: no kernels, no stacked experts,
    no embeddings, and nothing that is spread over processes.

    >>> _ = torch.manual_seed(0)
    >>> found = rank_by_role(nn.Sequential(nn.Linear(256, 256)), layouts=[
    ...     Layout(nn.Linear, weight=("out", "in"), role="mlp_in")])
    >>> 0.9 < found["mlp_in"] < 1.1
    True
    """
    found: dict[str, list[float]] = {}
    for tensor in walk(model, layouts=layouts):
        for record in tensor.records:
            matrix = _matrix(tensor, record)
            if matrix is not None:
                rank = stable_rank(matrix.float().cpu().numpy())
                found.setdefault(record.role, []).append(rank / random_stable_rank(*matrix.shape))
    return {role: median(ranks) for role, ranks in found.items()}


_TABLES = {"token_embedding", "position"}


def _matrix(tensor: ModelTensor, record: WeightRecord) -> torch.Tensor | None:
    values = tensor.tensor.detach()
    plain = type(tensor.tensor) in (nn.Parameter, torch.Tensor)
    if not plain or values.dim() != 2 or values.is_meta or not values.numel():
        return None
    if not record.roles or _TABLES & set(record.roles) or record.roles == ("structured",):
        return None
    matrix = values if record.where is None else _part(values, record.where)
    # A matrix that is not finite has no rank, and the loss has told by then.
    return matrix if bool(matrix.isfinite().all()) else None


def _part(values: torch.Tensor, where: Slice) -> torch.Tensor:
    """Return the rows or columns of a part, as one matrix."""
    side, start, length = where.axis, where.start, where.length
    split = values.unflatten(side, (-1, where.period or values.shape[side]))
    return split.narrow(side + 1, start, length).flatten(side, side + 1)

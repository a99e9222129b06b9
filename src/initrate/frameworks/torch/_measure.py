"""Moments of the tensors of a model, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

from initrate.frameworks.torch._fill import part_view, pieces
from initrate.frameworks.torch._sharded import local_region
from initrate.frameworks.torch._walk import ModelTensor
from initrate.measure import Moments, moments
from initrate.measure._moments import NOTHING


def measure_tensors(tensors: Sequence[ModelTensor]) -> dict[str, Moments]:
    """Return the moments of every part that has values here, by its name in the plan."""
    jobs = [
        (record.key, part_view(local_region(tensor.tensor.detach())[0], record.where))
        for tensor in tensors
        if not tensor.tensor.is_meta
        for record in tensor.records
    ]
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        return dict(
            zip((key for key, _ in jobs), pool.map(_moments, (v for _, v in jobs)), strict=True)
        )


def _moments(view: torch.Tensor) -> Moments:
    found = NOTHING
    for piece, _ in pieces(view):
        # Not every type of torch has one in NumPy; float32 holds the values of all short ones.
        if piece.dtype not in (torch.float32, torch.float64):
            piece = piece.float()
        found += moments(piece.cpu().numpy())
    return found

"""Attention of the last position alone: what it needs of the others, and nothing more."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class _KeepLast(torch.autograd.Function):
    """(x [M, B*T, d]) -> x itself and its last positions [M, B, d].

    Autograd's own gradient of a slice is a tensor of zeros as large as x, which is then added; here
    the gradient of the last positions goes straight into that of x.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, length: int) -> tuple[Tensor, Tensor]:
        ctx.length = length
        return x.view_as(x), at_last_position(x, length).contiguous()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        # In place: every use of x in the decoder makes a gradient of its own for it, which nobody
        # else holds.
        of_x, of_last = gradients
        at_last_position(of_x, ctx.length).add_(of_last)
        return of_x, None


class _Mix(torch.autograd.Function):
    """(query [S, H, d], states [S, T, d]) -> softmax(query states^T) states, [S, H, d].

    The two gradients of the states are sums of outer products and are formed in one product.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, states: Tensor) -> Tensor:
        share = torch.softmax(torch.bmm(query, states.transpose(1, 2)), -1)
        ctx.save_for_backward(query, states, share)
        return torch.bmm(share, states)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (of_mixed,) = gradients
        query, states, share = ctx.saved_tensors
        of_share = torch.bmm(of_mixed, states.transpose(1, 2))
        of_scores = share * (of_share - (share * of_share).sum(-1, keepdim=True))
        left = torch.cat([of_scores, share], 1).transpose(1, 2)
        of_states = torch.bmm(left, torch.cat([query, of_mixed], 1))
        return torch.bmm(of_scores, states), of_states


def at_last_position(x: Tensor, length: int) -> Tensor:
    """Return [M, B, d] of [M, B*T, d]: the hidden state of each sequence's last position."""
    return x.view(x.shape[0], -1, length, x.shape[-1])[:, :, -1]


def keep_last(x: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Return x [M, B*T, d], to be used from here on, and its last positions [M, B, d]."""
    kept, last = _KeepLast.apply(x, length)  # pyright: ignore[reportGeneralTypeIssues]
    return kept, last


def mix(query: Tensor, states: Tensor) -> Tensor:
    """Return softmax(query states^T) states, [S, H, d], of query [S, H, d] and states [S, T, d]."""
    return _Mix.apply(query, states)  # pyright: ignore[reportReturnType]

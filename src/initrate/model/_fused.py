"""Steps of the decoder with a backward pass of their own: fewer and better products, less memory.

Each function returns the numbers of the plain formula in its docstring, and its gradient; what
autograd would do instead is correct too, but touches memory more often.
"""

# torch's own decorator for backward passes hides the names of their parameters.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import functools
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


@functools.lru_cache(maxsize=32)
@torch.inference_mode(False)  # What is remembered must serve training too.
def _future(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The causal mask: minus infinity where a query would see a later key."""
    return torch.full((length, length), -torch.inf, dtype=dtype, device=device).triu(1)


def _softmax_gradient(of_share: Tensor, share: Tensor) -> Tensor:
    """The gradient of the scores from that of their softmax over the last axis."""
    product = share.mul(of_share)
    return product.addcmul_(share, product.sum(-1, keepdim=True), value=-1)


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        ctx.factor = query.shape[-1] ** -0.5
        future = _future(query.shape[1], query.dtype, query.device)
        scores = torch.baddbmm(future, query, key.transpose(1, 2), alpha=ctx.factor)
        share = torch.softmax(scores, -1)
        ctx.save_for_backward(query, key, value, share)
        return torch.bmm(share, value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        (of_mixed,) = gradients
        query, key, value, share = ctx.saved_tensors
        of_share = torch.bmm(of_mixed, value.transpose(1, 2))
        of_scores = _softmax_gradient(of_share, share).mul_(ctx.factor)
        return (
            torch.bmm(of_scores, key),
            torch.bmm(of_scores.transpose(1, 2), query),
            torch.bmm(share.transpose(1, 2), of_mixed),
        )


class _Mix(torch.autograd.Function):
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
        of_scores = _softmax_gradient(of_share, share)
        # The two gradients of the states are sums of outer products: one product forms both.
        left = torch.cat([of_scores, share], 1).transpose(1, 2)
        of_states = torch.bmm(left, torch.cat([query, of_mixed], 1))
        return torch.bmm(of_scores, states), of_states


class _KeepLast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, length: int) -> tuple[Tensor, Tensor]:
        ctx.length = length
        return x.view_as(x), at_last_position(x, length).contiguous()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        # In place, for autograd's own gradient of a slice is a tensor of zeros as large as x, to be
        # added: every use of x in the decoder makes it a gradient that nobody else holds.
        of_x, of_last = gradients
        at_last_position(of_x, ctx.length).add_(of_last)
        return of_x, None


class _Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        # The input comes fresh from a product, whose own gradient does not need it.
        ctx.mark_dirty(x)
        y = x.relu_()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (of_y,), (y,) = gradients, ctx.saved_tensors
        return torch.ops.aten.threshold_backward.grad_input(of_y, y, 0, grad_input=of_y)


class _Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, approximate: str) -> Tensor:
        ctx.save_for_backward(x)
        ctx.approximate = approximate
        return torch.nn.functional.gelu(x, approximate=approximate)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        # The gradient too comes fresh from a product and is used up here: it holds the result.
        (of_y,), (x,) = gradients, ctx.saved_tensors
        return torch.ops.aten.gelu_backward.grad_input(
            of_y, x, approximate=ctx.approximate, grad_input=of_y
        ), None


def _in_one_type(function: type[torch.autograd.Function], *tensors: Tensor) -> Tensor:
    """Apply a step in the type of products: autocast would not reach its backward pass."""
    kind = tensors[0].device.type
    if not torch.is_autocast_enabled(kind):
        return function.apply(*tensors)  # pyright: ignore[reportReturnType]
    dtype = torch.get_autocast_dtype(kind)
    with torch.autocast(kind, enabled=False):
        return function.apply(*(x.to(dtype) for x in tensors))  # pyright: ignore[reportReturnType]


def causal_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return softmax(query key^T / sqrt d_k + mask) value, [S, T, d_v], all given as [S, T, d]."""
    return _in_one_type(_Attend, query, key, value)


def mix(query: Tensor, states: Tensor) -> Tensor:
    """Return softmax(query states^T) states, [S, H, d], of query [S, H, d] and states [S, T, d]."""
    return _in_one_type(_Mix, query, states)


def relu_(x: Tensor) -> Tensor:
    """Return relu(x), in place; its gradient is written over the one that comes in."""
    return _Relu.apply(x)  # pyright: ignore[reportReturnType]


def gelu(x: Tensor, approximate: Literal["none", "tanh"]) -> Tensor:
    """Return gelu(x); its gradient is written over the one that comes in."""
    return _Gelu.apply(x, approximate)  # pyright: ignore[reportReturnType]


def at_last_position(x: Tensor, length: int) -> Tensor:
    """Return [M, B, d] of [M, B*T, d]: the hidden state of each sequence's last position."""
    return x.view(x.shape[0], -1, length, x.shape[-1])[:, :, -1]


def keep_last(x: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Return x [M, B*T, d], to be used from here on, and its last positions [M, B, d]."""
    kept, last = _KeepLast.apply(x, length)  # pyright: ignore[reportGeneralTypeIssues]
    return kept, last

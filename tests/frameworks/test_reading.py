"""Models of users may raise anything while they are read: one line, and nothing is changed."""

from __future__ import annotations

import sys
from collections.abc import Callable

import jax.numpy as jnp
import keras
import pytest
import torch
from torch import nn

import initrate
from initrate.errors import InputError


class Unwalkable(nn.Linear):
    def named_modules(self, *args: object, **kwargs: object):
        raise RuntimeError("no modules today")


class LayoutOfModule(nn.Linear):
    initrate_layout = {"weight": ("out", "in"), "module": ("in",)}  # noqa: RUF012


def odd_stride() -> nn.Module:
    layer = nn.ConvTranspose1d(4, 4, 3)
    layer.stride = (0,)
    return layer


def deep() -> nn.Module:
    model: nn.Module = nn.Linear(2, 2)
    for _ in range(1_200):
        model = nn.Sequential(model)
    return model


def without_g() -> nn.Module:
    layer = torch.nn.utils.weight_norm(nn.Linear(4, 4))
    del layer.weight_g
    return layer


def half_fused() -> nn.Module:
    layer = nn.MultiheadAttention(8, 2)
    layer.in_proj_weight = nn.Parameter(torch.zeros(25, 8))
    return layer


def strides_of_text() -> keras.layers.Layer:
    layer = keras.layers.Conv1DTranspose(4, 3)
    layer.build((None, 8, 4))
    layer.strides = "x"  # pyright: ignore[reportAttributeAccessIssue]
    return layer


MODELS: dict[str, tuple[Callable[[], object], str]] = {
    "modules that raise": (lambda: Unwalkable(4, 4), "RuntimeError: no modules today"),
    "a layout with the key module": (lambda: LayoutOfModule(4, 4), "has a key 'module'"),
    "a stride of zero": (odd_stride, "ZeroDivisionError"),
    "a very deep model": (deep, "RecursionError"),
    "a norm without its gain": (without_g, "AttributeError"),
    "a fused map that is not three parts": (half_fused, "25 places along axis 0"),
    "keys of several kinds": (lambda: {0: jnp.ones((4, 4)), "a": jnp.ones((4, 4))}, "ValueError"),
    "a name twice": (
        lambda: {"a.b": {"w": jnp.ones((4, 4))}, "a": {"b": {"w": jnp.zeros((4, 4))}}},
        "two parameters go by the name 'a.b.w'",
    ),
    "strides of text": (strides_of_text, "TypeError"),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", MODELS)
def test_one_line_says_what_cannot_be_read(name: str) -> None:
    make, words = MODELS[name]
    # Other tests may have left a higher limit, which the deep model would not reach.
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)
    try:
        with pytest.raises(InputError) as caught:
            initrate.apply(make(), gamma=0.5)
    finally:
        sys.setrecursionlimit(before)
    assert words in str(caught.value) and "\n" not in str(caught.value)

"""The modules of torch, and Conv1D of transformers: d_in, roles and what is kept."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from initrate.frameworks.torch import apply, plan
from initrate.frameworks.torch._modules import describe_module, is_norm, norm_eps
from initrate.rule import Rule

D_IN = [
    (nn.Linear(24, 40), "weight", 24),
    (Conv1D(40, 24), "weight", 24),
    (nn.Conv1d(8, 12, 5), "weight", 40),
    (nn.Conv2d(3, 12, (4, 5)), "weight", 60),
    (nn.Conv2d(12, 12, 3, groups=12), "weight", 9),
    (nn.Conv2d(12, 24, 3, groups=4), "weight", 27),
    (nn.Conv3d(2, 4, 3), "weight", 54),
    # Every output of a transposed convolution adds up every stride-th place of the kernel.
    (nn.ConvTranspose1d(8, 12, 4, stride=2), "weight", 16),
    (nn.ConvTranspose2d(8, 12, 4, stride=2, groups=2), "weight", 16),
    (nn.Embedding(50, 24), "weight", 24),
    (nn.Bilinear(6, 4, 9), "weight", 24),
    (nn.GRU(24, 10), "weight_ih_l0", 24),
    (nn.GRU(24, 10), "weight_hh_l0", 10),
    (nn.LSTMCell(24, 10), "weight_hh", 10),
]


@pytest.mark.parametrize(
    ("module", "name", "d_in"), D_IN, ids=[f"{type(m).__name__}.{n}" for m, n, _ in D_IN]
)
def test_d_in(module: nn.Module, name: str, d_in: int):
    row = next(row for row in plan(module, gamma=0.8) if row.name == name)
    assert (row.d_in, row.action) == (d_in, "draw")
    assert row.std == pytest.approx(d_in**-0.8)


def test_every_output_of_a_transposed_convolution_has_the_std_of_a_dense_map():
    # Unit inputs give outputs of variance d_in * std**2, away from the edges.
    module = nn.ConvTranspose1d(64, 400, 4, stride=2, bias=False)
    apply(module, gamma=0.5)
    out = module(torch.ones(1, 64, 30))[0, :, 8:-8].detach()
    assert abs(float(out.std()) - 1) < 5 / 400**0.5


@pytest.mark.parametrize("kind", [nn.LayerNorm, nn.RMSNorm, nn.BatchNorm1d])
def test_norms_are_kept(kind: type[nn.Module]):
    assert {row.action for row in plan(kind(8), gamma=0.8)} == {"keep"}


class MyRMSNorm(nn.Module):
    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(shape))
        self.variance_epsilon = 1e-6


def test_a_norm_by_its_name_has_vectors_alone():
    assert is_norm(MyRMSNorm((8,)))
    assert norm_eps(MyRMSNorm((8,))) == 1e-6
    assert not is_norm(MyRMSNorm((8, 8)))
    assert plan(MyRMSNorm((8, 8)), gamma=0.8).rows[0].action == "refuse"


def test_packed_attention_has_three_parts():
    module = nn.MultiheadAttention(64, 4)
    apply(module, rule=Rule(gamma=0.8, gamma_by_role={"qk": 0.5}))
    for part, gamma in zip(module.in_proj_weight.detach().chunk(3), (0.5, 0.5, 0.8), strict=True):
        assert abs(float(part.std()) / 64**-gamma - 1) < 5 / (2 * part.numel()) ** 0.5


def test_attention_with_widths_of_their_own():
    module = nn.MultiheadAttention(24, 4, kdim=10, vdim=14, bias=False, add_bias_kv=True)
    found = {row.name: (row.role, row.d_in, row.action) for row in plan(module, gamma=0.8)}
    assert found["q_proj_weight"] == ("query", 24, "draw")
    assert found["k_proj_weight"] == ("key", 10, "draw")
    assert found["v_proj_weight"] == ("value", 14, "draw")
    assert found["bias_k"][2] == found["bias_v"][2] == "keep"


def test_slopes_are_kept_and_unknown_modules_are_not_described():
    assert plan(nn.PReLU(), gamma=0.8).rows[0].action == "keep"
    assert describe_module(MyRMSNorm((8, 8))) == {}


def test_a_class_called_conv1d_elsewhere_is_not_that_of_transformers():
    class Conv1D(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(24, 40))

    assert plan(Conv1D(), gamma=0.8).rows[0].action == "refuse"

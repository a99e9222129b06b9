"""A model that looks trained is not overwritten by accident."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from initrate.errors import InputError
from initrate.frameworks.torch import apply


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8))


@pytest.mark.parametrize("which", ["1.weight", "1.bias"])
@pytest.mark.parametrize("mode", ["draw", "rescale"])
def test_a_norm_that_is_not_constant_is_refused_without_force(which: str, mode: str) -> None:
    trained = model()
    with torch.no_grad():
        trained.get_parameter(which)[3] += 0.01
    before = {name: tensor.clone() for name, tensor in trained.state_dict().items()}
    with pytest.raises(InputError, match=rf"'{which}' is not constant: .* force=True"):
        apply(trained, gamma=0.5, mode=mode)  # pyright: ignore[reportArgumentType]
    assert all(torch.equal(tensor, before[k]) for k, tensor in trained.state_dict().items())
    apply(trained, gamma=0.5, force=True, mode=mode)  # pyright: ignore[reportArgumentType]
    assert not torch.equal(trained.get_parameter("0.weight"), before["0.weight"])
    assert torch.equal(trained.get_parameter(which), before[which])


@pytest.mark.parametrize("gain", [1.0, 0.0, 0.5])
def test_a_constant_norm_is_fresh_whatever_its_gain(gain: float) -> None:
    fresh = model()
    nn.init.constant_(fresh[1].weight, gain)  # pyright: ignore[reportArgumentType]
    assert apply(fresh, gamma=0.5).ok


def test_a_batch_norm_that_has_seen_batches_looks_fresh_as_its_gain_is_constant() -> None:
    fresh = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    fresh(torch.randn(16, 8))
    running = fresh[1].running_mean.clone()  # pyright: ignore[reportCallIssue]
    assert apply(fresh, gamma=0.5).ok
    assert torch.equal(fresh[1].running_mean, running)  # pyright: ignore[reportArgumentType]

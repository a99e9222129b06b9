"""Weights computed from other parameters: the draw takes effect, or is refused and taken back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

from initrate.errors import InputError
from initrate.frameworks.torch import apply, plan
from initrate.rule import Rule, Zero


def old_weight_norm(module: nn.Module) -> nn.Module:
    with pytest.warns(FutureWarning, match="weight_norm"):
        return nn.utils.weight_norm(module)


class Doubled(nn.Module):
    """An own parametrization with a way back."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    def right_inverse(self, x: torch.Tensor) -> torch.Tensor:
        return x / 2


class Remembering(nn.Module):
    """One whose way back leaves something in a buffer that the way forth needs."""

    size: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("size", torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.size

    def right_inverse(self, x: torch.Tensor) -> torch.Tensor:
        self.size.copy_(x.abs().max())
        return x / self.size


class Symmetric(nn.Module):
    """One whose way back does not give the weight back."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.triu() + x.triu(1).T

    def right_inverse(self, x: torch.Tensor) -> torch.Tensor:
        return x.triu()


class Raising(Doubled):
    """One whose way back fails when it is used a second time."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def right_inverse(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls > 1:
            raise ArithmeticError("no way back")
        return x / 2


class OneWay(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.abs()


def through(step: type[nn.Module]) -> Callable[[nn.Module], nn.Module]:
    def wrap(module: nn.Module) -> nn.Module:
        return parametrize.register_parametrization(module, "weight", step())

    return wrap


def bits(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def weight_of(model: nn.Module, of: str = "0", name: str = "weight") -> torch.Tensor:
    """Return what a module computes its weight to be."""
    found = getattr(model.get_submodule(of), name)
    assert isinstance(found, torch.Tensor)
    return found.detach().clone()


def unchanged(model: nn.Module, before: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


TAKE_EFFECT = {
    "new weight norm": parametrizations.weight_norm,
    "old weight norm": old_weight_norm,
    "own": through(Doubled),
    "own with a buffer": through(Remembering),
    "two at once": lambda m: through(Doubled)(parametrizations.weight_norm(m)),
}


@pytest.mark.parametrize("name", TAKE_EFFECT)
@pytest.mark.parametrize("training", [True, False])
def test_the_draw_takes_effect_and_the_second_time_it_changes_nothing(
    name: str, training: bool
) -> None:
    model = nn.Sequential(TAKE_EFFECT[name](nn.Linear(64, 96)), nn.Linear(96, 64))
    plain = nn.Sequential(nn.Linear(64, 96), nn.Linear(96, 64))
    apply(plain, gamma=0.8, seed=2)
    model.train(training)
    parameters = list(model.parameters())
    places = [p.data_ptr() for p in parameters]
    assert apply(model, gamma=0.8, seed=2).ok
    for _ in range(2):
        assert torch.allclose(weight_of(model), weight_of(plain), rtol=1e-5, atol=0)
        assert float(weight_of(model).std()) == pytest.approx(64**-0.8, rel=0.05)
        model(torch.ones(2, 64))
    assert [id(p) for p in model.parameters()] == [id(p) for p in parameters]
    assert [p.data_ptr() for p in model.parameters()] == places
    versions = [p._version for p in model.parameters()]
    assert apply(model, gamma=0.8, seed=2).ok
    assert [p._version for p in model.parameters()] == versions
    model[0](torch.ones(2, 64)).sum().backward()
    assert all(p.grad is not None for p in model[0].parameters())


REFUSED = {
    "spectral norm": (parametrizations.spectral_norm, "is spectrally normalized"),
    "old spectral norm": (nn.utils.spectral_norm, "is spectrally normalized"),
    "orthogonal": (parametrizations.orthogonal, "is kept orthogonal"),
    "pruned": (lambda m: prune.l1_unstructured(m, "weight", 0.5), "is pruned"),
    "pruned twice": (
        lambda m: prune.random_unstructured(prune.l1_unstructured(m, "weight", 2), "weight", 2),
        "is pruned",
    ),
    "no way back": (through(OneWay), "is computed by OneWay, which has no right_inverse"),
    "not given back": (through(Symmetric), "does not come out as it was set"),
    "raises": (through(Raising), "ArithmeticError: no way back"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore:`torch.nn.utils.spectral_norm` is deprecated:FutureWarning")
def test_a_weight_that_cannot_take_the_draw_is_refused_and_nothing_is_changed(name: str) -> None:
    wrap, reason = REFUSED[name]
    torch.manual_seed(0)
    model = nn.Sequential(
        parametrizations.weight_norm(nn.Linear(8, 8)),
        old_weight_norm(nn.Linear(8, 8)),
        wrap(nn.Linear(8, 8)),
        nn.Linear(8, 8),
    )
    before, old = bits(model), weight_of(model, "1")
    plan(model, gamma=0.8, unknown="keep")
    with pytest.raises(InputError, match=rf"'2\.weight'.*{reason}"):
        apply(model, gamma=0.8)
    assert unchanged(model, before) and torch.equal(weight_of(model, "1"), old)


@pytest.mark.parametrize("wrap", [parametrizations.weight_norm, old_weight_norm])
def test_a_weight_norm_has_no_zero_and_is_refused_with_a_rule_that_is_zero(
    wrap: Callable[[nn.Module], nn.Module],
) -> None:
    model = nn.ModuleDict({"lm_head": wrap(nn.Linear(8, 8))})
    before = bits(model)
    with pytest.raises(InputError, match="does not come out as it was set"):
        apply(model, rule=Rule(draws={"unembedding": Zero()}))
    assert unchanged(model, before)


def test_a_computed_weight_is_rescaled() -> None:
    model = nn.Sequential(parametrizations.weight_norm(nn.Linear(64, 64)))
    before = weight_of(model)
    assert apply(model, gamma=0.8, mode="rescale").ok
    ratio = weight_of(model) / before
    assert torch.allclose(ratio, ratio.mean().expand_as(ratio), rtol=1e-4)
    assert float(weight_of(model).square().mean().sqrt()) == pytest.approx(64**-0.8)


def test_a_recurrent_map_with_an_old_weight_norm_takes_effect() -> None:
    model = nn.GRU(64, 64, bidirectional=True)
    with pytest.warns(FutureWarning, match="weight_norm"):
        nn.utils.weight_norm(model, "weight_hh_l0")
    assert apply(model, gamma=0.8).ok
    names = {row.name for row in plan(model, gamma=0.8)}
    assert {"weight_hh_l0", "weight_hh_l0_reverse"} <= names and "weight_hh_l0_v" not in names
    assert float(weight_of(model, "", "weight_hh_l0").std()) == pytest.approx(64**-0.8, rel=0.05)

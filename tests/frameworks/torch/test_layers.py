"""How many layers a stack has, in the ways that models nest their lists."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from torch import nn

from initrate.frameworks.torch._layers import count_layers


class Layer(nn.Module):
    """One layer, with an MLP of maps in a sequence."""

    def __init__(self, **parts: nn.Module) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
        for name, part in parts.items():
            self.add_module(name, part)


class Attention(nn.Module):
    """A part of a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.o = nn.Linear(4, 4)


class AlbertTransformer(nn.Module):
    """Uses the layers of its one group again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(num_hidden_layers=12)
        group = nn.Module()
        group.albert_layers = nn.ModuleList([Layer()])
        self.albert_layer_groups = nn.ModuleList([group])


class HrmTextModel(nn.Module):
    """Goes through its layers in cycles."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(3))


def holding(**parts: nn.Module) -> nn.Module:
    module = nn.Module()
    for name, part in parts.items():
        module.add_module(name, part)
    return module


def layers(n: int) -> nn.ModuleList:
    return nn.ModuleList(Layer() for _ in range(n))


def parts_of_a_layer() -> nn.Module:
    return holding(layer=nn.ModuleList([Attention(), Layer()]))


def experts(n: int) -> nn.Module:
    return holding(experts=nn.ModuleList(Layer() for _ in range(n)))


CASES = {
    "list": (holding(h=layers(5)), "h.2.mlp.2.weight", 5),
    "a table and a head in the sequence": (
        nn.Sequential(nn.Embedding(9, 4), Layer(), Layer(), nn.Linear(4, 9)),
        "1.mlp.2.weight",
        2,
    ),
    "sequence": (nn.Sequential(Layer(), Layer()), "1.mlp.2.weight", 2),
    "encoder and decoder": (
        holding(encoder=holding(layers=layers(3)), decoder=holding(layers=layers(4))),
        "decoder.layers.0.mlp.0.weight",
        4,
    ),
    "stages of different lengths": (
        holding(stages=nn.ModuleList(holding(blocks=layers(n)) for n in (2, 2, 6, 2))),
        "stages.2.blocks.5.mlp.0.weight",
        12,
    ),
    "parts in a list": (
        holding(block=nn.ModuleList(parts_of_a_layer() for _ in range(6))),
        "block.3.layer.0.o.weight",
        6,
    ),
    "experts": (
        holding(layers=nn.ModuleList(experts(8) for _ in range(3))),
        "layers.1.experts.7.mlp.2.weight",
        3,
    ),
    "experts alone": (experts(8), "experts.7.mlp.2.weight", None),
    "a sequence of maps": (holding(block=Layer()), "block.mlp.2.weight", None),
    "no list": (holding(attn=Attention()), "attn.o.weight", None),
    "again and again": (
        holding(encoder=AlbertTransformer()),
        "encoder.albert_layer_groups.0.albert_layers.0.mlp.2.weight",
        12,
    ),
    "in cycles": (holding(model=HrmTextModel()), "model.layers.0.mlp.2.weight", None),
}


@pytest.mark.parametrize(("model", "name", "n_layers"), CASES.values(), ids=CASES)
def test_layers(model: nn.Module, name: str, n_layers: int | None):
    path = name.split(".")
    assert count_layers(owners(model, path), path) == n_layers


def owners(model: nn.Module, path: list[str]) -> list[nn.Module]:
    return [model.get_submodule(".".join(path[:depth])) for depth in range(len(path))]

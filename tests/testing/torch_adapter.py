"""The adapter of torch, for the suite."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import distributed, nn
from torch.nn.utils import parametrizations

from initrate.frameworks.torch import apply, plan
from initrate.frameworks.torch._walk import walk
from initrate.rule import Audit, Plan, Rule


class Mlp(nn.Module):
    def __init__(self, *, reverse: bool = False, bias: bool = True) -> None:
        super().__init__()
        makers: dict[str, Callable[[], nn.Module]] = {
            "fc1": lambda: nn.Linear(32, 64, bias=bias),
            "fc2": lambda: nn.Linear(64, 32, bias=bias),
        }
        for name in reversed(makers) if reverse else makers:
            self.add_module(name, makers[name]())


def mlp(*, reverse: bool = False) -> nn.Module:
    parts: dict[str, nn.Module] = {"norm": nn.LayerNorm(32), "mlp": Mlp(reverse=reverse)}
    return nn.ModuleDict({name: parts[name] for name in (reversed(parts) if reverse else parts)})


def frozen() -> nn.Module:
    model = mlp()
    model.get_parameter("mlp.fc1.weight").requires_grad_(False)
    return model


def on_meta() -> nn.Module:
    with torch.device("meta"):
        return mlp()


def sharded() -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    model, mesh = mlp(), init_device_mesh("cpu", (distributed.get_world_size(),))
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            spread = distribute_tensor(parameter.detach(), mesh, [Shard(0)])
            setattr(module, name, nn.Parameter(spread))
    return model


def tied() -> nn.Module:
    model = nn.ModuleDict({"lm_head": nn.Linear(32, 40, bias=False), "wte": nn.Embedding(40, 32)})
    model["lm_head"].weight = model["wte"].weight
    return model


class Experts(nn.Module):
    """Experts as transformers stacks them."""

    def __init__(self) -> None:
        super().__init__()
        self.is_transposed = True
        self.up_proj = nn.Parameter(torch.zeros(3, 32, 64))


def quantized() -> nn.Module:
    made = type("Linear4bit", (nn.Linear,), {})
    made.__module__ = "bitsandbytes.nn.modules"
    return nn.ModuleDict({"mlp": nn.ModuleDict({"fc1": made(32, 64), "fc2": nn.Linear(64, 32)})})


def shared_views() -> nn.Module:
    both = torch.zeros(96, 32)
    model = nn.ModuleDict({"q_proj": nn.Linear(32, 64), "k_proj": nn.Linear(32, 64)})
    model["q_proj"].weight = nn.Parameter(both[:64])  # pyright: ignore[reportArgumentType]
    model["k_proj"].weight = nn.Parameter(both[32:])  # pyright: ignore[reportArgumentType]
    return model


def zero_size() -> nn.Module:
    with warnings.catch_warnings():
        # Of torch, which says that it initializes nothing there.
        warnings.simplefilter("ignore", UserWarning)
        return nn.ModuleDict({"empty": nn.Linear(0, 8), "fc": nn.Linear(32, 8)})


BUILDERS: dict[str, Callable[[], nn.Module]] = {
    "plain": mlp,
    "twice": mlp,
    "reordered": lambda: mlp(reverse=True),
    "float16": lambda: mlp().half(),
    "bfloat16": lambda: mlp().bfloat16(),
    "frozen": frozen,
    "meta": on_meta,
    "sharded": sharded,
    "tied": tied,
    "fused": lambda: nn.ModuleDict({"attn": nn.MultiheadAttention(32, 4)}),
    "expert": lambda: nn.ModuleDict({"mlp": nn.ModuleDict({"experts": Experts()})}),
    "parametrized": lambda: nn.Sequential(parametrizations.weight_norm(nn.Linear(32, 64))),
    "quantized": quantized,
    "shared_views": shared_views,
    "zero_size": zero_size,
}


def whole(tensor: torch.Tensor) -> NDArray[np.floating]:
    if "torch.distributed.tensor" in sys.modules:
        from torch.distributed.tensor import DTensor

        if isinstance(tensor, DTensor):
            tensor = tensor.full_tensor()
    tensor = tensor.detach()
    return tensor.float().clone().numpy()


class TorchAdapter:
    """torch, as the suite asks for it."""

    absent: Mapping[str, str] = {}

    def build(self, case: str) -> Any:
        torch.manual_seed(0)
        return BUILDERS[case]()

    def plan(self, model: nn.Module, rule: Rule) -> Plan:
        return plan(model, rule=rule)

    def apply(self, model: nn.Module, rule: Rule, seed: int) -> tuple[nn.Module, Audit]:
        return model, apply(model, rule=rule, seed=seed)

    def values(self, model: nn.Module) -> dict[str, NDArray[np.floating]]:
        found: dict[str, NDArray[np.floating]] = {}
        try:
            tensors = walk(model)
        except ValueError:  # A model that is refused as a whole has its parameters still.
            return {name: whole(p) for name, p in model.named_parameters()}
        for tensor in tensors:
            record = tensor.records[0]
            for name in (record.name, *record.aliases):
                found[name] = whole(tensor.tensor)
        return found


@contextmanager
def one_process(folder: Path) -> Iterator[None]:
    """Start a group of one process, which is what a model has to have to be sharded."""
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder / 'rendezvous'}", rank=0, world_size=1
    )
    try:
        yield
    finally:
        distributed.destroy_process_group()

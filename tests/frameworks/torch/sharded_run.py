"""One process of several that hold the shards of a model together."""

from __future__ import annotations

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

from initrate.errors import InputError
from initrate.frameworks.torch import apply
from initrate.rule import Audit, Rule

RULE = Rule(gamma=0.8, gamma_by_role={"qk": 0.4})
RESCALED = Rule(gamma=0.8, gamma_by_role={"qk": 0.4}, bias="keep")


class Named(nn.Module):
    """Modules by their names, in a class that may be sharded: one with a forward."""

    def __init__(self, modules: dict[str, nn.Module]) -> None:
        super().__init__()
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def build() -> Named:
    """Return a model whose sides no number of processes divides."""
    torch.manual_seed(0)
    return Named(
        {
            "wte": nn.Embedding(11, 6),
            "attn": nn.MultiheadAttention(6, 2),
            "norm": nn.LayerNorm(6),
            "mlp": Named({"fc1": nn.Linear(6, 5), "fc2": nn.Linear(5, 7)}),
            "lm_head": nn.Linear(7, 1),
        }
    )


def fully_sharded(mesh: DeviceMesh) -> Named:
    """Return the model as FSDP2 spreads it."""
    model = build()
    fully_shard(model.get_submodule("mlp"), mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def distributed_by(placement: Shard | Replicate, mesh: DeviceMesh) -> Named:
    """Return the model with every tensor spread in one way."""
    model = build()
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            # A vector has no second side.
            placed = Shard(0) if parameter.dim() < 2 and placement == Shard(1) else placement
            spread = distribute_tensor(parameter.detach(), mesh, [placed])
            setattr(module, name, nn.Parameter(spread))
    return model


def same(model: nn.Module, whole: nn.Module) -> bool:
    """Return whether the gathered tensors are, bit by bit, those of the model that is whole."""
    found, expected = dict(model.named_parameters()), dict(whole.named_parameters())
    assert found.keys() == expected.keys()
    gathered = {name: p.full_tensor() if isinstance(p, DTensor) else p for name, p in found.items()}
    return all(torch.equal(gathered[name], p) for name, p in expected.items())


def check_audit(found: Audit, expected: Audit) -> None:
    """The moments are those of the whole tensors, on every process."""
    assert found.findings == expected.findings
    for row, other in zip(found.rows, expected.rows, strict=True):
        assert row.measured.size == other.measured.size, row.name
        assert row.measured.lowest == other.measured.lowest, row.name
        assert abs(row.std - other.std) <= 1e-12 * other.std, row.name


def work(rank: int, n: int, rendezvous: str) -> None:
    """Apply to whole and to sharded models, over 1, 2 and n processes, and compare."""
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=n
    )
    try:
        whole = build()
        expected = apply(whole, rule=RULE, seed=3)
        for size in (1, 2, n):
            mesh = DeviceMesh("cpu", list(range(size)))
            if rank < size:
                compare(mesh, whole, expected)
        check_two_dimensions(whole, expected)
    finally:
        distributed.destroy_process_group()


def compare(mesh: DeviceMesh, whole: Named, expected: Audit) -> None:
    """Compare all ways of sharding with the model that is whole."""
    model = fully_sharded(mesh)
    check_audit(apply(model, rule=RULE, seed=3), expected)
    assert same(model, whole), mesh
    versions = local_versions(model)
    apply(model, rule=RULE, seed=3)
    assert local_versions(model) == versions

    for placement in (Shard(0), Shard(1), Replicate()):
        model = distributed_by(placement, mesh)
        check_audit(apply(model, rule=RULE, seed=3), expected)
        assert same(model, whole), (mesh, placement)

    check_rescale(mesh)
    check_trained(mesh)
    check_meta(mesh, whole)


def local_versions(model: nn.Module) -> list[int]:
    """Return how often the values that lie here were written."""
    with torch.no_grad():
        return [p.to_local()._version for p in model.parameters() if isinstance(p, DTensor)]


def check_rescale(mesh: DeviceMesh) -> None:
    """The factor comes from all shards, not from those that lie here."""
    whole, model = build(), fully_sharded(mesh)
    apply(whole, rule=RESCALED, mode="rescale")
    apply(model, rule=RESCALED, mode="rescale")
    for (name, p), (_, q) in zip(model.named_parameters(), whole.named_parameters(), strict=True):
        assert isinstance(p, DTensor)
        assert torch.allclose(p.full_tensor(), q, rtol=1e-6, atol=0), name


def check_trained(mesh: DeviceMesh) -> None:
    """A norm that differs between processes alone is seen by all of them."""
    model = fully_sharded(mesh)
    weight = model.get_parameter("norm.weight")
    assert isinstance(weight, DTensor)
    with torch.no_grad():
        weight.to_local()[...] = 1.0 + distributed.get_rank()
        before = weight.full_tensor().clone()
    several = mesh.size() > 1
    try:
        apply(model, rule=RULE)
    except InputError as error:
        assert several and "norm.weight" in str(error)
    else:
        assert not several
    assert torch.equal(weight.full_tensor(), before)


def check_meta(mesh: DeviceMesh, whole: nn.Module) -> None:
    """A model that was sharded on the meta device gets memory for its shards alone."""
    with torch.device("meta"):
        model = fully_sharded(mesh)
    apply(model, rule=RULE, seed=3, materialize="cpu")
    assert same(model, whole), mesh


def check_two_dimensions(whole: nn.Module, expected: Audit) -> None:
    """Replicated over one dimension of the mesh and sharded over the other; sharded over both."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model = fully_sharded(mesh)
    check_audit(apply(model, rule=RULE, seed=3), expected)
    assert same(model, whole)

    even, other = Named({"mlp": nn.Linear(6, 8)}), Named({"mlp": nn.Linear(6, 8)})
    parallelize_module(other.get_submodule("mlp"), mesh["tp"], ColwiseParallel())
    fully_shard(other, mesh=mesh["dp"])
    check_audit(apply(other, gamma=0.8), apply(even, gamma=0.8))
    assert same(other, even)

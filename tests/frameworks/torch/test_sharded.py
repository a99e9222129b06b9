"""Shards of FSDP2 and DTensor hold the tensors that an unsharded model has."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.multiprocessing.spawn import spawn

from initrate.errors import InputError
from initrate.frameworks.torch import apply
from tests.frameworks.torch.sharded_run import work


def test_shards_over_1_2_and_4_processes_hold_the_same_global_tensors(tmp_path: Path) -> None:
    # One start of processes for all: each of them is slow to start.
    spawn(work, (4, str(tmp_path / "rendezvous")), nprocs=4)


def test_a_model_flattened_by_a_wrapper_is_refused() -> None:
    class FullyShardedDataParallel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.flat = nn.Parameter(torch.ones(64))

    model = nn.Sequential(FullyShardedDataParallel())
    with pytest.raises(InputError, match="'0' is wrapped by FullyShardedDataParallel"):
        apply(model, gamma=0.5)
    assert bool(torch.equal(model.get_parameter("0.flat"), torch.ones(64)))


def test_a_model_partitioned_by_deepspeed_is_refused() -> None:
    model = nn.Sequential(nn.Linear(4, 4))
    model[0].weight.ds_id = 0  # pyright: ignore[reportAttributeAccessIssue, reportArgumentType]
    with pytest.raises(InputError, match=r"'0\.weight' is partitioned by DeepSpeed"):
        apply(model, gamma=0.5)

"""Memory that is lost, negated, read-only or shared: refused by name before anything is written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from initrate.errors import InputError
from initrate.frameworks.torch import apply, audit, plan


def with_weight(make: Callable[[], torch.Tensor]) -> nn.Sequential:
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    model[1].weight = nn.Parameter(make())
    return model


def freed() -> torch.Tensor:
    tensor = torch.zeros(8, 8)
    tensor.untyped_storage().resize_(0)
    return tensor


NEGATED = {
    "negated": lambda: torch._neg_view(torch.randn(8, 8)),  # pyright: ignore[reportPrivateImportUsage]
    "conjugate": lambda: torch.randn(8, 8, dtype=torch.complex64).conj().imag,
}


@pytest.mark.parametrize("name", NEGATED)
def test_negated_views_are_refused_and_can_be_audited_around(name: str) -> None:
    model = with_weight(NEGATED[name])
    before = model.get_parameter("0.weight").detach().clone()
    with pytest.raises(InputError, match=r"'1\.weight' is a view that negates"):
        apply(model, gamma=0.5)
    assert torch.equal(model.get_parameter("0.weight"), before)
    assert "1.weight" not in [row.name for row in audit(model, gamma=0.5).rows]


def test_freed_memory_is_refused() -> None:
    model = with_weight(freed)
    before = model.get_parameter("0.weight").detach().clone()
    for function in (apply, audit):
        with pytest.raises(InputError, match="memory"):
            function(model, gamma=0.5)
    assert torch.equal(model.get_parameter("0.weight"), before)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells what is read-only")
@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_a_file_that_is_mapped_to_be_read_is_refused(tmp_path: Path) -> None:
    np.zeros((8, 8), np.float32).tofile(tmp_path / "f")
    mapped = np.memmap(tmp_path / "f", "f4", "r", shape=(8, 8))
    model = with_weight(lambda: torch.from_numpy(mapped))
    with pytest.raises(InputError, match=r"'1\.weight' lies in memory that is read-only"):
        apply(model, gamma=0.5)
    assert not np.fromfile(tmp_path / "f", np.float32).any()


def test_two_tensors_of_one_numpy_array_are_one() -> None:
    base = np.zeros((8, 8), np.float32)
    model = with_weight(lambda: torch.from_numpy(base))
    model[0].weight = nn.Parameter(torch.from_numpy(base))
    assert apply(model, gamma=0.5).ok and audit(model, gamma=0.5).ok
    row = next(row for row in plan(model, gamma=0.5) if row.name == "0.weight")
    assert row.record.aliases == ("1.weight",)


def test_overlapping_views_of_several_types_are_refused() -> None:
    base = torch.zeros(128)
    model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False))
    model[0].weight = nn.Parameter(base[:64].view(8, 8))
    model[1].weight = nn.Parameter(base.view(torch.bfloat16)[64:128].view(8, 8))
    with pytest.raises(InputError, match="overlapping views"):
        apply(model, gamma=0.5)


class Scaled(nn.Embedding):
    @property
    def embed_scale(self) -> float:
        raise RuntimeError("not known yet")


@pytest.mark.parametrize("factor", [10**400, torch.tensor(1 + 1j), "two", None])
def test_a_multiplier_that_is_no_number_is_not_known_and_nothing_breaks(factor: object) -> None:
    model = nn.Sequential(nn.Embedding(11, 8), nn.Linear(8, 8))
    setattr(model[0], "embed_scale", factor)  # noqa: B010
    assert {row.name for row in apply(model, gamma=0.5).rows} >= {"0.weight", "1.weight"}
    assert apply(nn.Sequential(Scaled(11, 8)), gamma=0.5).rows

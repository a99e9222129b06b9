"""torch passes the suite; and the suite fails where an adapter does something else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from initrate.errors import InputError
from initrate.frameworks.torch import apply
from initrate.rule import Audit, Rule, Slice
from initrate.testing import Adapter, ConformanceError, cases, check, describe
from initrate.testing._check import part_of
from tests.testing.torch_adapter import TorchAdapter, mlp, one_process


@pytest.mark.parametrize("case", cases())
def test_torch_conforms(case: str, tmp_path: Path) -> None:
    adapter: Adapter = TorchAdapter()
    with one_process(tmp_path) if case == "sharded" else nullcontext():
        check(adapter, case)


class OtherSeed(TorchAdapter):
    def apply(self, model: nn.Module, rule: Rule, seed: int) -> tuple[nn.Module, Audit]:
        return super().apply(model, rule, 0)


class ForgetsTies(TorchAdapter):
    def apply(self, model: nn.Module, rule: Rule, seed: int) -> tuple[nn.Module, Audit]:
        audit = apply(model, rule=rule, seed=seed)
        model.get_submodule("lm_head").weight = nn.Parameter(torch.zeros(40, 32))
        return model, audit


class AlwaysWrites(TorchAdapter):
    """One that draws from a generator with a state."""

    def apply(self, model: nn.Module, rule: Rule, seed: int) -> tuple[nn.Module, Audit]:
        audit = apply(model, rule=rule, seed=seed)
        with torch.no_grad():
            model.get_parameter("mlp.fc1.weight").normal_(std=0.0625)
        return model, audit


class DrawsTheFrozen(TorchAdapter):
    def apply(self, model: nn.Module, rule: Rule, seed: int) -> tuple[nn.Module, Audit]:
        audit = apply(model, rule=rule, seed=seed)
        with torch.no_grad():
            model.get_parameter("mlp.fc1.weight").normal_()
        return model, audit


class RefusesNothing(TorchAdapter):
    def apply(self, model: nn.Module, rule: Rule, seed: int) -> tuple[nn.Module, Audit]:
        return model, apply(mlp(), rule=Rule(), seed=seed)


class HalfWritten(TorchAdapter):
    def apply(self, model: nn.Module, rule: Rule, seed: int) -> tuple[nn.Module, Audit]:
        next(p for p in model.parameters() if p.requires_grad).data.zero_()
        raise InputError("too late")


class SilentlyAbsent(TorchAdapter):
    def build(self, case: str) -> Any:
        return None


class Pretending(TorchAdapter):
    absent: Mapping[str, str] = {"plain": "there is none"}


@pytest.mark.parametrize(
    ("adapter", "case", "message"),
    [
        (OtherSeed, "plain", "does not hold its draw"),
        (ForgetsTies, "tied", "tied"),
        (AlwaysWrites, "twice", "does not hold its draw"),
        (DrawsTheFrozen, "frozen", "is kept, and has changed"),
        (RefusesNothing, "meta", "apply takes what it cannot write"),
        (RefusesNothing, "quantized", "apply takes what it cannot write"),
        (HalfWritten, "quantized", "what is refused has changed a value"),
        (SilentlyAbsent, "tied", "no model and no reason why"),
        (Pretending, "plain", "there is a model, and it is said to be absent"),
    ],
)
def test_an_adapter_that_does_otherwise_fails(
    adapter: Callable[[], Adapter], case: str, message: str
) -> None:
    with pytest.raises(ConformanceError, match=f"^{case}: .*{message}"):
        check(adapter(), case)


def test_an_absent_case_is_declared_with_its_reason() -> None:
    class WithoutMeta(SilentlyAbsent):
        absent: Mapping[str, str] = {"meta": "there are no shapes without memory"}

    check(WithoutMeta(), "meta")


def test_every_case_says_which_model_it_needs() -> None:
    assert all(describe(case) for case in cases())
    with pytest.raises(InputError, match="did you mean 'tied'"):
        describe("tide")


def test_a_part_is_cut_out_in_the_order_of_its_own_shape() -> None:
    tensor = np.arange(24.0).reshape(2, 12)
    found = part_of(tensor, Slice(axis=1, start=2, length=2, period=6))
    assert found.tolist() == [2, 3, 8, 9, 14, 15, 20, 21]

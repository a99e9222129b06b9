"""Preflight: what one step shows, and that the model is as before."""

from __future__ import annotations

import copy
import json
import math
import random

import numpy as np
import pytest
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from initrate.errors import InputError
from initrate.frameworks.torch import Preflight, apply, preflight

VOCABULARY = 97


def gpt2(gamma: float | None, *, layers: int = 4) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(
        n_embd=64,
        n_layer=layers,
        n_head=2,
        vocab_size=VOCABULARY,
        n_positions=32,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPT2LMHeadModel(config)
    if gamma is not None:
        apply(model, gamma=gamma)
    return model


def tokens() -> dict[str, torch.Tensor]:
    made = torch.Generator().manual_seed(1)
    ids = torch.randint(VOCABULARY, (4, 32), generator=made)
    return {"input_ids": ids, "labels": ids}


def stack(depth: int, gamma: float | None, *, width: int = 32) -> nn.Sequential:
    torch.manual_seed(0)
    inner = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.GELU())]
    model = nn.Sequential(*inner, nn.Linear(width, 10))
    if gamma is not None:
        apply(model, gamma=gamma)
    return model


def looked_at(model: nn.Module, **options) -> Preflight:
    made = torch.Generator().manual_seed(1)
    batch = torch.randn(16, 32, generator=made)
    return preflight(model, batch, labels=torch.arange(16) % 10, **options)


@pytest.mark.parametrize("gamma", [0.5, 0.8, None])
def test_an_ordinary_start_gives_no_warning(gamma):
    found = preflight(gpt2(gamma), tokens())
    assert found.ok, (found.warnings, found.findings)
    assert found.expected_loss == pytest.approx(math.log(VOCABULARY))
    assert found.expected_loss is not None
    # At gamma 0.5 the logits have a variance of 1, which adds half a nat.
    assert abs(found.loss - found.expected_loss - (0.5 if gamma == 0.5 else 0)) < 0.15


def test_a_small_start_of_a_deep_model_gives_a_plateau():
    found = preflight(gpt2(1.2, layers=8), tokens())
    assert len(found.warnings) == 1
    assert "'transformer.h' hardly write" in found.warnings[0]
    assert found.findings == ()


def test_a_stack_without_norms_fades():
    assert looked_at(stack(3, 0.5)).ok
    found = looked_at(stack(12, 1.2))
    text = " | ".join(found.warnings)
    assert "the signal fades in 'model'" in text
    assert "the gradient fades in 'model'" in text
    assert "times Adam's eps" in text


def test_eps_of_adam_decides_what_is_too_small():
    model = stack(3, 0.5)
    assert not any("eps" in line for line in looked_at(model, eps=1e-8).warnings)
    assert any("eps 1:" in line or "eps 1," in line for line in looked_at(model, eps=1.0).warnings)


def test_a_map_that_starts_at_zero_by_design_is_no_plateau():
    class Adapter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lora_A, self.lora_B = nn.Linear(32, 4), nn.Linear(4, 32)
            nn.init.zeros_(self.lora_B.weight)
            nn.init.zeros_(self.lora_B.bias)

        def forward(self, x):
            return x + self.lora_B(self.lora_A(x))

    found = looked_at(nn.Sequential(Adapter(), Adapter(), nn.Linear(32, 10)))
    gradients = {row.name: row.weight_gradient for row in found.rows}
    assert gradients["0.lora_A"] == 0
    assert (gradients["0.lora_B"] or 0) > 1e-3
    assert found.warnings == ()


def test_large_tied_embeddings_give_ir110():
    model = gpt2(None)
    nn.init.normal_(model.transformer.wte.weight)
    found = preflight(model, tokens())
    assert [finding.code for finding in found.findings] == ["IR110"]
    assert "are too large" in found.findings[0].message
    assert found.loss > 10


def test_a_model_that_knows_the_answer_gives_ir110():
    model = nn.Linear(10, 10, bias=False)
    with torch.no_grad():
        model.weight.copy_(20 * torch.eye(10))
    found = preflight(model, torch.eye(10), labels=torch.arange(10))
    assert "trained already" in found.findings[0].message


class Everything(nn.Module):
    """Batch norm, dropout, a buffer that is replaced, and random numbers of all kinds."""

    count: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(8, 8)
        self.norm = nn.BatchNorm1d(8)
        self.dropout = nn.Dropout(0.5)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.utils.spectral_norm(nn.Linear(8, 3))
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count = self.count + 1
        random.random()
        np.random.rand()
        return self.head(self.relu(self.dropout(self.norm(self.map(x)))))


def test_the_model_and_all_random_states_are_as_before():
    torch.manual_seed(0)
    model = Everything()
    model.norm.eval()
    model.map.weight.grad = torch.full_like(model.map.weight, 3.0)
    own = model.count
    grads = {name: p.grad for name, p in model.named_parameters()}
    before = copy.deepcopy(model.state_dict())
    flags = [module.training for module in model.modules()]
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()
    found = preflight(model, torch.randn(4, 8, generator=torch.Generator().manual_seed(2)),
                      labels=torch.tensor([0, 1, 2, 0]))  # fmt: skip
    for name, values in model.state_dict().items():
        assert torch.equal(values, before[name]), name
    assert model.count is own
    assert all(p.grad is grads[name] for name, p in model.named_parameters())
    assert torch.equal(model.map.weight.grad, torch.full_like(model.map.weight, 3.0))
    assert [module.training for module in model.modules()] == flags
    assert not any(module._forward_hooks for module in model.modules())
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    assert str(np.random.get_state()) == str(states[2])
    again = preflight(model, torch.randn(4, 8, generator=torch.Generator().manual_seed(2)),
                      labels=torch.tensor([0, 1, 2, 0]))  # fmt: skip
    assert found == again


def test_the_model_is_as_before_when_it_fails():
    model = Everything().eval()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(InputError, match="does not run on this batch"):
        preflight(model, torch.randn(4, 9), labels=torch.zeros(4, dtype=torch.long))
    with pytest.raises(InputError, match="no loss of its own"):
        preflight(model, torch.randn(4, 8))
    assert not any(module.training for module in model.modules())
    assert not any(module._forward_hooks for module in model.modules())
    assert all(torch.equal(values, before[name]) for name, values in model.state_dict().items())


def test_what_is_measured_is_what_one_computes_by_hand():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 3)).double()
    x, labels = torch.randn(5, 4).double(), torch.tensor([0, 1, 2, 0, 1])
    found = preflight(model, x, labels=labels)
    hidden = model[0](x)
    hidden.retain_grad()
    loss = nn.functional.cross_entropy(model[1](hidden), labels)
    loss.backward()

    def rms(t: torch.Tensor | None) -> float:
        assert t is not None
        return float(t.detach().pow(2).mean().sqrt())

    row = found.rows[0]
    assert row.activation == pytest.approx(rms(hidden))
    assert row.gradient == pytest.approx(rms(hidden.grad))
    assert row.weight_gradient == pytest.approx(rms(model.get_parameter("0.weight").grad))
    assert found.loss == pytest.approx(float(loss.detach()))


def test_block_to_skip_is_the_branch_beside_its_input():
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.map = nn.Linear(8, 8, bias=False)

        def forward(self, x):
            return x + self.map(x)

    model = nn.Sequential(Block(), Block(), nn.Linear(8, 3))
    with torch.no_grad():
        model.get_parameter("0.map.weight").copy_(torch.eye(8) / 4)
        model.get_parameter("1.map.weight").zero_()
    found = preflight(model, torch.randn(4, 8), labels=torch.zeros(4, dtype=torch.long))
    ratios = {row.name: row.block_to_skip for row in found.rows}
    assert ratios["0"] == pytest.approx(0.25)
    assert ratios["1"] == 0
    assert ratios["2"] is None


def test_ways_to_give_the_loss():
    model, x, labels = nn.Linear(4, 3), torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])
    own = preflight(model, x, labels=labels)
    by_class = preflight(model, (x,), labels=labels, loss=nn.CrossEntropyLoss())
    of_output = preflight(model, {"input": x}, loss=lambda out: out.square().mean())
    assert own.loss == pytest.approx(by_class.loss)
    assert by_class.expected_loss == own.expected_loss == pytest.approx(math.log(3))
    assert of_output.expected_loss is None
    pixels = preflight(
        nn.Conv2d(2, 5, 1), torch.randn(1, 2, 3, 3), labels=torch.zeros(1, 3, 3, dtype=torch.long)
    )
    assert pixels.expected_loss == pytest.approx(math.log(5))


@pytest.mark.parametrize(
    ("options", "plateau", "expected"),
    [
        ({}, False, 2000),
        ({}, True, 4000),
        ({"beta2": 0.95}, False, 40),
        ({"steps": 1000}, False, 50),
        ({"steps": 1000}, True, 250),
        ({"steps": 100_000}, False, 2000),
        ({"steps": 100_000}, True, 5000),
    ],
)
def test_the_warm_up_and_its_reasons(options, plateau, expected):
    found = looked_at(stack(12, 1.2) if plateau else stack(3, 0.5), **options)
    assert bool(found.warnings) == plateau
    assert found.suggested_warmup == expected
    assert "rule of thumb" in found.reasoning


def test_a_model_that_overflows_gives_a_warning():
    model = stack(3, 0.5)
    with torch.no_grad():
        model.get_parameter("2.weight").fill_(math.inf)
    found = looked_at(model)
    assert "not finite, first at '2'" in found.warnings[0]
    json.dumps(found.to_dict(), allow_nan=False)


def test_table_and_plain_values():
    found = looked_at(stack(12, 1.2))
    head, rows = found.table()
    assert len(head) == len(rows[0])
    assert len(rows) == len(found.rows) == 26
    page = found._repr_html_()
    assert "suggested warm-up" in page
    assert "fades" in page
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["warnings"] == list(found.warnings)
    assert plain["rows"][0]["name"] == "0"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: preflight("model", 1), "model is str"),  # pyright: ignore[reportArgumentType]
        (lambda: preflight(nn.Linear(2, 2), 1, labels=torch.zeros(1)), "batch is int"),
        (lambda: looked_at(stack(1, None).requires_grad_(False)), "no parameter of the model"),
        (lambda: looked_at(nn.Linear(32, 10, device="meta")), "has no values"),
        (lambda: looked_at(stack(1, None), steps=0), "steps is 0"),
        (lambda: looked_at(stack(1, None), beta2=1.0), r"beta2 is 1\.0"),
        (lambda: looked_at(stack(1, None), eps=0.0), r"eps is 0\.0"),
        (lambda: looked_at(stack(1, None), loss="ce"), "loss is 'ce'"),
        (
            lambda: preflight(nn.Linear(2, 2), torch.ones(3, 2), labels=torch.zeros(4).long()),
            r"labels have the shape \(4,\)",
        ),
        (
            lambda: preflight(nn.Linear(2, 2), torch.ones(3, 2), loss=lambda out: out),
            "no scalar",
        ),
        (
            lambda: preflight(nn.Linear(2, 2), torch.ones(3, 2), loss=lambda a, b: a),
            "does not take what the model gives",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)

"""Models of transformers: what they do by themselves does not undo the draw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import nn

from initrate.frameworks.huggingface import rule_of
from initrate.frameworks.torch import apply, audit
from initrate.rule import Rule


def state(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(
        torch.equal(tensor, second[name]) for name, tensor in first.items()
    )


def applied(model: nn.Module) -> dict[str, torch.Tensor]:
    assert apply(model, gamma=0.6, seed=7).ok
    return state(model)


def gpt2() -> transformers.PreTrainedModel:
    config = transformers.GPT2Config(
        n_layer=2, n_embd=16, n_head=2, vocab_size=30, n_positions=8, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config)


@pytest.mark.parametrize(
    "again",
    [
        lambda model: model.post_init(),
        lambda model: model.init_weights(),
        lambda model: model.initialize_weights(),
        lambda model: model.apply(model._initialize_weights),
        lambda model: model.apply(model._init_weights),
    ],
    ids=["post_init", "init_weights", "initialize_weights", "_initialize_weights", "_init_weights"],
)
def test_the_inits_of_transformers_do_not_undo_the_draw(
    again: Callable[[transformers.PreTrainedModel], object],
) -> None:
    model = gpt2()
    values = applied(model)
    again(model)
    assert equal(state(model), values)


def test_an_init_that_writes_in_place_is_stopped_by_the_mark_of_the_module() -> None:
    class InPlace(transformers.GPT2LMHeadModel):
        def _init_weights(self, module: nn.Module) -> None:
            if isinstance(module, nn.Embedding):
                module.weight.data.normal_()

    model = InPlace(gpt2().config)  # pyright: ignore[reportArgumentType]
    values = applied(model)
    model.post_init()
    assert equal(state(model), values)
    # Called past the mark, it draws anew: that is what the docstring of apply warns of.
    model.apply(model._init_weights)
    assert not equal(state(model), values)


def test_new_rows_of_the_embeddings_leave_the_old_ones() -> None:
    model = gpt2()
    values = applied(model)
    model.resize_token_embeddings(40, mean_resizing=False)
    found = state(model)
    assert found["transformer.wte.weight"].shape == (40, 16)
    assert torch.equal(found["transformer.wte.weight"][:30], values["transformer.wte.weight"])
    assert float(found["transformer.wte.weight"][30:].abs().max()) > 0
    rest = [name for name in values if name not in ("transformer.wte.weight", "lm_head.weight")]
    assert all(torch.equal(found[name], values[name]) for name in rest)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    model = gpt2()
    values = applied(model)
    model.save_pretrained(tmp_path)
    assert equal(state(transformers.GPT2LMHeadModel.from_pretrained(tmp_path)), values)


def test_marks_are_for_models_of_transformers_alone() -> None:
    model = nn.ModuleDict({"lm": gpt2(), "linear": nn.Linear(4, 4)})
    apply(model, gamma=0.6)
    marked = {name for name, p in model.named_parameters() if hasattr(p, "_is_hf_initialized")}
    assert marked == {name for name, _ in model.named_parameters() if name.startswith("lm.")}
    assert not hasattr(model["linear"], "_is_hf_initialized")


def test_rule_and_seed_are_saved_along_so_that_an_audit_needs_no_gamma(tmp_path: Path) -> None:
    model = gpt2()
    apply(model, gamma=0.6, seed=7)
    model.save_pretrained(tmp_path)
    loaded = transformers.GPT2LMHeadModel.from_pretrained(tmp_path)
    assert rule_of(loaded.config) == (Rule(gamma=0.6), 7)
    found = audit(loaded)
    assert found.ok and found.rule == Rule(gamma=0.6)


@pytest.mark.parametrize("options", [{"mode": "rescale"}, {"include": "*.wte.*"}])
def test_what_is_no_draw_of_the_whole_model_is_not_written_down(options: dict[str, Any]) -> None:
    model = gpt2()
    apply(model, gamma=0.6, **options)
    assert rule_of(model.config) is None


def test_of_a_model_that_was_trained_since_nothing_is_expected() -> None:
    model = gpt2()
    apply(model, gamma=0.6)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    found = audit(model)
    assert found.rule is None and found.ok and found.outdated == Rule(gamma=0.6)
    assert found.summary().startswith("rule formula, γ 0.6 is written down and not compared")
    assert not audit(model, gamma=0.6).ok

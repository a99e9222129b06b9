"""Names: wrappers change none."""

from __future__ import annotations

import pytest
import torch
from peft import PromptTuningConfig, TaskType, get_peft_model
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from initrate.errors import InputError
from initrate.frameworks.torch import apply, plan
from initrate.frameworks.torch._names import canonical_name, wrapper_prefix


@pytest.mark.parametrize(
    ("name", "prefix", "expected"),
    [
        ("h.0.weight", "", "h.0.weight"),
        ("module.h.0.weight", "module.", "h.0.weight"),
        ("module.h.0.weight", "", "module.h.0.weight"),
        ("h.0._orig_mod.fc.weight", "", "h.0.fc.weight"),
        ("_orig_mod.h.0._checkpoint_wrapped_module.fc.weight", "_orig_mod.", "h.0.fc.weight"),
        ("_fsdp_wrapped_module.h.weight", "", "h.weight"),
        ("base_model.model.h.q.base_layer.weight", "base_model.model.", "h.q.weight"),
        ("my_orig_mod.h.weight", "", "my_orig_mod.h.weight"),
    ],
)
def test_a_canonical_name_has_no_wrapper_in_it(name: str, prefix: str, expected: str) -> None:
    assert canonical_name(name, prefix=prefix) == expected


def test_a_model_that_only_looks_wrapped_keeps_its_names() -> None:
    class LoraModel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = nn.Linear(4, 4)

    assert wrapper_prefix(LoraModel()) == ""
    assert [row.name for row in plan(LoraModel(), gamma=0.5)] == ["model.weight", "model.bias"]


def test_prefixes_of_wrappers_around_wrappers_add_up() -> None:
    model = nn.DataParallel(torch.compile(nn.Linear(4, 4), backend="eager"))  # pyright: ignore[reportArgumentType]
    assert wrapper_prefix(model) == "module._orig_mod."
    assert [row.name for row in plan(model, gamma=0.5)] == ["weight", "bias"]


def test_two_tensors_that_would_go_by_one_name_are_refused() -> None:
    model = nn.ModuleDict({"fc": nn.ModuleDict({"base_layer": nn.Linear(4, 4)})})
    model["fc"].register_parameter("weight", nn.Parameter(torch.ones(4)))  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"'fc\.weight'"):
        apply(model, gamma=0.5, layouts=[], unknown="keep")


# PEFT asks transformers by a name that it is about to drop.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
def test_a_model_whose_prompts_are_tuned_has_the_model_itself_inside() -> None:
    config = PromptTuningConfig(task_type=TaskType.CAUSAL_LM, num_virtual_tokens=2)
    gpt2 = GPT2Config(
        n_layer=1, n_embd=8, n_head=2, vocab_size=20, bos_token_id=None, eos_token_id=None
    )
    model = get_peft_model(GPT2LMHeadModel(gpt2), config)
    assert wrapper_prefix(model) == "base_model."

"""GPT-2 conversion: the same logits both ways, and refusals by name."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, GPT2Model

from initrate.bench import PlainDecoder
from initrate.errors import InputError
from initrate.model import ModelConfig, from_gpt2, initialize, logits, tensor_specs, to_gpt2
from initrate.rule import Rule

VOCABULARY = 37
CONFIG = ModelConfig(
    n_layers=2,
    d_model=24,
    n_heads=3,
    d_k=8,
    d_v=8,
    d_ff=40,
    activation="gelu_tanh",
    max_positions=11,
    tied=True,
    biases="blocks",
)


def weights_of(config: ModelConfig, seed: int = 5) -> dict[str, np.ndarray]:
    """Return random weights of one model, norms and biases away from 1 and 0."""
    drawn = initialize(config, VOCABULARY, [Rule(gamma=0.4, bias="torch")], [seed])
    generator = np.random.default_rng(seed)
    return {
        name: (array[0] + 0.1 * generator.standard_normal(array[0].shape)).astype(np.float32)
        for name, array in drawn.items()
    }


def tokens() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(0, VOCABULARY, (4, 9)))


def our_logits(config: ModelConfig, weights: dict[str, np.ndarray]) -> torch.Tensor:
    stacked = {name: torch.from_numpy(array)[None] for name, array in weights.items()}
    return logits(config, stacked, tokens()[None], positions="all")[0]


def hugging_face(**changes: object) -> GPT2LMHeadModel:
    """Return a small GPT-2 of Hugging Face's own making, all its tensors random."""
    settings = {"vocab_size": VOCABULARY, "n_positions": 11, "n_embd": 24, "n_layer": 2}
    torch.manual_seed(3)
    model = GPT2LMHeadModel(
        GPT2Config(
            **{**settings, "n_head": 3, "bos_token_id": None, "eos_token_id": None, **changes}
        )
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


@pytest.mark.parametrize("tied", [True, False])
def test_to_gpt2_gives_the_same_logits(tied: bool) -> None:
    config = replace(CONFIG, tied=tied)
    weights = weights_of(config)
    model = to_gpt2(config, weights)
    assert not model.training
    with torch.no_grad():
        theirs = model(tokens()).logits
    assert theirs.std() > 0.1
    torch.testing.assert_close(our_logits(config, weights), theirs, rtol=0, atol=1e-4)
    plain = PlainDecoder(config, VOCABULARY)
    plain.load_canonical(weights)
    torch.testing.assert_close(plain(tokens()), theirs, rtol=0, atol=1e-4)


@pytest.mark.parametrize("changes", [{}, {"tie_word_embeddings": False}, {"n_inner": 40}])
def test_from_gpt2_gives_the_same_logits(changes: dict[str, object]) -> None:
    model = hugging_face(**changes)
    config, weights = from_gpt2(model)
    assert config.tied == ("tie_word_embeddings" not in changes)
    assert config.d_ff == changes.get("n_inner", 4 * 24)
    with torch.no_grad():
        theirs = model(tokens()).logits
    torch.testing.assert_close(our_logits(config, weights), theirs, rtol=0, atol=1e-4)


@pytest.mark.parametrize("tied", [True, False])
def test_there_and_back_changes_no_bit(tied: bool) -> None:
    config = replace(CONFIG, tied=tied)
    weights = weights_of(config)
    config_back, back = from_gpt2(to_gpt2(config, weights))
    assert config_back == config
    assert list(sorted(back)) == sorted(spec.name for spec in tensor_specs(config, VOCABULARY))
    for name, array in weights.items():
        assert back[name].dtype == np.float32
        np.testing.assert_array_equal(back[name], array, err_msg=name)


def test_conversion_copies_and_leaves_the_generator_alone() -> None:
    weights = weights_of(CONFIG)
    state = torch.get_rng_state()
    model = to_gpt2(CONFIG, weights)
    assert torch.equal(state, torch.get_rng_state())
    _, back = from_gpt2(model)
    for array in (*weights.values(), *back.values()):
        array += 1
    _, again = from_gpt2(model)
    assert all(not np.shares_memory(again[name], back[name]) for name in back)
    np.testing.assert_array_equal(again["final_norm.bias"] + 1, back["final_norm.bias"])


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"norm_position": "post"}, "norm_position"),
        ({"norm": "rmsnorm"}, "norm is"),
        ({"activation": "gelu"}, "activation"),
        ({"positions": "rotary"}, "positions"),
        ({"biases": "all"}, "biases"),
        ({"d_k": 4}, "d_k"),
        ({"d_v": 16}, "d_v"),
        ({"n_heads": 5}, "n_heads"),
    ],
)
def test_to_gpt2_refuses_the_field(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InputError, match=f"model .*{field}.*GPT-2 needs|GPT-2 needs.*{field}"):
        to_gpt2(replace(CONFIG, **changes), {})


def test_to_gpt2_refuses_wrong_weights() -> None:
    weights = weights_of(CONFIG)
    with pytest.raises(InputError, match=r"'blocks\.1\.mlp\.in\.bias' is missing"):
        to_gpt2(CONFIG, {n: a for n, a in weights.items() if n != "blocks.1.mlp.in.bias"})
    with pytest.raises(InputError, match=r"'token_embedding\.weight' is missing"):
        to_gpt2(CONFIG, {})
    with pytest.raises(InputError, match="'extra' is not one of"):
        to_gpt2(CONFIG, {**weights, "extra": np.zeros(3)})
    with pytest.raises(InputError, match=r"has shape \[1, 24, 24\]: expected \[24, 24\]"):
        name = "blocks.0.attention.key.weight"
        to_gpt2(CONFIG, {**weights, name: weights[name][None]})


@pytest.mark.parametrize(
    ("field", "found"),
    [
        ("activation_function", "gelu"),
        ("scale_attn_weights", False),
        ("scale_attn_by_inverse_layer_idx", True),
    ],
)
def test_from_gpt2_refuses_the_switch(field: str, found: object) -> None:
    with pytest.raises(InputError, match=f"GPT-2 {field} is"):
        from_gpt2(hugging_face(**{field: found}))


def test_from_gpt2_refuses_other_models() -> None:
    bare = GPT2Model(GPT2Config(vocab_size=5, n_positions=4, n_embd=4, n_layer=1, n_head=1))
    with pytest.raises(InputError, match="cannot convert a GPT2Model"):
        from_gpt2(bare)  # pyright: ignore[reportArgumentType]
    model = hugging_face()
    module = model.get_submodule("transformer.h.0.mlp.c_fc")
    module.register_parameter("low_rank", torch.nn.Parameter(torch.ones(2)))
    with pytest.raises(InputError, match=r"mlp\.c_fc\.low_rank' is missing or unknown"):
        from_gpt2(model)
    with pytest.raises(InputError, match="meta device"):
        from_gpt2(cast(GPT2LMHeadModel, torch.nn.Module.to(hugging_face(), "meta")))

"""The oracle itself, held against models and schedules that others wrote."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

from initrate.bench import (
    PlainDecoder,
    plain_decay,
    plain_learning_rate,
    plain_optimizer,
    plain_step,
)
from initrate.model import ModelConfig
from initrate.training import Training, window

VOCABULARY = 19


def tokens() -> torch.Tensor:
    return torch.randint(0, VOCABULARY, (3, 7), generator=torch.Generator().manual_seed(1))


def random_model(config: ModelConfig) -> PlainDecoder:
    generator = torch.Generator().manual_seed(0)
    model = PlainDecoder(config, VOCABULARY)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model


def test_rotary_rmsnorm_swiglu_agree_with_llama() -> None:
    config = ModelConfig(
        d_model=24,
        n_heads=3,
        d_k=8,
        d_v=8,
        d_ff=20,
        norm="rmsnorm",
        activation="swiglu",
        positions="rotary",
        biases="none",
    )
    plain = random_model(config)
    llama = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=24,
            intermediate_size=20,
            num_hidden_layers=2,
            num_attention_heads=3,
            rms_norm_eps=config.norm_eps,
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=None,
        )
    ).eval()
    names = {
        "token_embedding": "model.embed_tokens",
        "final_norm": "model.norm",
        "unembedding": "lm_head",
        "blocks": "model.layers",
        "norm_1": "input_layernorm",
        "norm_2": "post_attention_layernorm",
        "attention": "self_attn",
        "query": "q_proj",
        "key": "k_proj",
        "value": "v_proj",
        "output": "o_proj",
        "in": "up_proj",
        "gate": "gate_proj",
        "out": "down_proj",
    }
    llama.load_state_dict(
        {
            ".".join(names.get(part, part) for part in name.split(".")): tensor
            for name, tensor in plain.state_dict().items()
        }
    )
    with torch.no_grad():
        torch.testing.assert_close(plain(tokens()), llama(tokens()).logits, rtol=1e-4, atol=1e-4)


def test_post_norm_agrees_with_torch_encoder_layers() -> None:
    config = ModelConfig(
        d_model=24,
        n_heads=3,
        d_k=8,
        d_v=8,
        d_ff=20,
        norm_position="post",
        activation="relu",
        positions="none",
        biases="all",
    )
    plain = random_model(config)
    x = plain.token_embedding(tokens())
    mask = nn.Transformer.generate_square_subsequent_mask(7)
    for block in plain.blocks:
        state = block.state_dict()
        layer = nn.TransformerEncoderLayer(24, 3, 20, dropout=0.0, batch_first=True)
        joined = {
            kind: torch.cat(
                [state[f"attention.{part}.{kind}"] for part in ("query", "key", "value")]
            )
            for kind in ("weight", "bias")
        }
        renamed = {f"self_attn.in_proj_{kind}": tensor for kind, tensor in joined.items()}
        for theirs, ours in {
            "self_attn.out_proj": "attention.output",
            "linear1": "mlp.in",
            "linear2": "mlp.out",
            "norm1": "norm_1",
            "norm2": "norm_2",
        }.items():
            for kind in ("weight", "bias"):
                renamed[f"{theirs}.{kind}"] = state[f"{ours}.{kind}"]
        layer.load_state_dict(renamed)
        x = layer(x, src_mask=mask)
    torch.testing.assert_close(plain(tokens()), plain.unembedding(x), rtol=1e-4, atol=1e-4)


def test_canonical_weights_survive_loading() -> None:
    config = ModelConfig(d_model=8, d_k=4, d_v=6, d_ff=10, biases="all")
    weights = random_model(config).canonical()
    assert weights["blocks.0.attention.query.weight"].shape == (8, 4)
    assert weights["blocks.1.mlp.out.weight"].shape == (10, 8)
    assert weights["unembedding.weight"].shape == (8, VOCABULARY)
    assert weights["token_embedding.weight"].shape == (VOCABULARY, 8)
    other = PlainDecoder(config, VOCABULARY)
    other.load_canonical(weights)
    assert all((weights[name] == array).all() for name, array in other.canonical().items())


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("cosine", [0.1, 0.2, 0.3, 0.4, 0.3 * (0.5 + math.sqrt(0.125)) + 0.1, 0.25, None, 0.1]),
        ("linear", [0.1, 0.2, 0.3, 0.4, 0.325, 0.25, 0.175, 0.1]),
        ("constant", [0.1, 0.2, 0.3, 0.4, 0.4, 0.4, 0.4, 0.4]),
    ],
)
def test_learning_rates(schedule: str, expected: list[float | None]) -> None:
    training = Training(
        steps=8,
        warmup_steps=4,
        lr=0.4,
        lr_start=0.0,
        lr_final=0.1,
        schedule=schedule,  # pyright: ignore[reportArgumentType]
    )
    for step, lr in enumerate(expected):
        if lr is not None:
            assert plain_learning_rate(training, step) == pytest.approx(lr, rel=1e-12)


def test_decay_window() -> None:
    training = Training(weight_decay=0.5, decay_schedule=window(2, 4))
    assert [plain_decay(training, step) for step in range(6)] == [0, 0, 0.5, 0.5, 0, 0]


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
@pytest.mark.parametrize(("mode", "share"), [("coupled", 0.1 * 0.25), ("independent", 0.25)])
@pytest.mark.parametrize(
    ("decay", "untouched"),
    [
        ("all", ()),
        ("matrices", ("norm", "bias")),
        ("not_embeddings", ("norm", "bias", "embedding")),
    ],
)
def test_decay_alone(
    optimizer: str, mode: str, share: float, decay: str, untouched: tuple[str, ...]
) -> None:
    """With a loss whose gradient is zero, a step takes the decayed share and nothing else."""
    training = Training(
        steps=1,
        warmup_steps=0,
        schedule="constant",
        lr=0.1,
        weight_decay=0.25,
        optimizer=optimizer,  # pyright: ignore[reportArgumentType]
        decay=decay,  # pyright: ignore[reportArgumentType]
        decay_mode=mode,  # pyright: ignore[reportArgumentType]
        loss="last",
    )
    # A vocabulary of one: the loss is zero whatever the weights.
    model = PlainDecoder(ModelConfig(d_model=8, d_k=4, d_v=4, d_ff=8, biases="all"), 1)
    before = model.canonical()
    zeros = torch.zeros(2, 7, dtype=torch.long)
    loss = plain_step(
        model,
        plain_optimizer(model, training),
        training=training,
        step=0,
        tokens=zeros,
        targets=zeros[:, 0],
    )
    assert loss == 0
    for name, array in model.canonical().items():
        left = 1.0 if any(word in name for word in untouched) else 1 - share
        assert array == pytest.approx(left * before[name], rel=1e-6), name

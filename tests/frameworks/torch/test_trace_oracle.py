"""The tracer against the layouts: models of Hugging Face, small and without values."""

from __future__ import annotations

import warnings

import pytest
import torch
import transformers
from torch import nn

from initrate.frameworks.torch import Layout, plan, trace
from initrate.rule import EMBEDDING_ROLES

IDS = torch.full((2, 8), 5)
TEXT = {"input_ids": IDS, "attention_mask": torch.ones_like(IDS)}
SEQ2SEQ = {"input_ids": IDS, "decoder_input_ids": IDS}
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 40,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 40, "n_positions": 64}
ENCODER = {x: SIZES[x] for x in ("hidden_size", "intermediate_size", "num_hidden_layers")}
IMAGE = {"pixel_values": (2, 3, 16, 16)}
MODELS = [
    ("gpt2", {**GPT2, "bos_token_id": 0, "eos_token_id": 0}, TEXT),
    ("gpt_neox", {**SIZES, "rotary_pct": 0.5}, TEXT),
    ("bloom", {**SIZES, "n_head": 4, "n_layer": 2}, TEXT),
    ("falcon", {x: SIZES[x] for x in SIZES if x != "head_dim"}, TEXT),
    ("llama", SIZES, TEXT),
    ("mixtral", {**SIZES, "num_local_experts": 3, "num_experts_per_tok": 2}, TEXT),
    ("gpt_oss", {**SIZES, "num_local_experts": 3, "num_experts_per_tok": 2}, TEXT),
    ("phi3", SIZES, TEXT),
    ("bert", SIZES, TEXT),
    ("mamba", {**SIZES, "state_size": 4, "expand": 2}, {"input_ids": IDS}),
    ("t5", {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
            "vocab_size": 40}, SEQ2SEQ),
    ("bart", {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "vocab_size": 40,
              "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "encoder_attention_heads": 4,
              "decoder_attention_heads": 4, "max_position_embeddings": 64}, SEQ2SEQ),
    ("vit", {**ENCODER, "num_attention_heads": 4, "image_size": 16, "patch_size": 8}, IMAGE),
]  # fmt: skip


def built(name: str, options: dict) -> nn.Module:
    config = transformers.AutoConfig.for_model(name, **options)
    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = transformers.AutoModel.from_config(config, attn_implementation="eager")
    if "num_local_experts" in options:
        model.set_experts_implementation("batched_mm")
    return model.train()


@pytest.mark.parametrize(("name", "options", "batch"), MODELS, ids=[x[0] for x in MODELS])
def test_every_drawn_row_has_the_d_in_that_the_forward_adds_up(name, options, batch):
    model = built(name, options)
    found = trace(model, batch)
    rows = [row for row in plan(model, gamma=0.8) if row.action == "draw"]
    assert rows
    disagree, uncovered = [], []
    for row in rows:
        uses = found.of(row.record.name)
        sizes = {use.d_in for use in uses if use.kind in ("contraction", "table")}
        if not sizes:
            uncovered.append(row)
        elif sizes != {row.d_in}:
            disagree.append((row.name, row.d_in, found.describe(row.record.name)))
    assert disagree == []
    # Only tokens and positions are used in no product.
    assert all(set(row.record.roles) <= set(EMBEDDING_ROLES) for row in uncovered)
    assert plan(model, gamma=0.8, example=batch).rows == plan(model, gamma=0.8).rows
    assert all(module.training for module in model.modules())


def test_a_wrong_layout_of_a_known_model_is_found():
    model = built("gpt2", MODELS[0][1])
    wrong = [Layout("Conv1D", weight=("out", "in"))]
    refused = plan(model, gamma=0.8, layouts=wrong, example=TEXT).refused
    names = {row.name.partition(".")[2].partition(".")[2] for row in refused}
    # The output of the attention is square: both readings give the same draw.
    assert names == {"attn.c_attn.weight", "mlp.c_fc.weight", "mlp.c_proj.weight"}
    assert any("layout says d_in 32, the example contracts 128" in row.reason for row in refused)


def test_experts_without_tokens_are_uncovered_and_the_others_agree():
    torch.manual_seed(0)
    name, options, batch = next(x for x in MODELS if x[0] == "mixtral")
    config = transformers.AutoConfig.for_model(name, **options)
    model = transformers.AutoModel.from_config(config, attn_implementation="eager")
    model.set_experts_implementation("eager")
    found = trace(model, batch)
    assert found.values  # Which experts run is known only from the values of the router.
    assert found.d_in("layers.0.mlp.experts.down_proj") == 48

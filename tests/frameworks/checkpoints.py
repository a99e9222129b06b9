"""Small checkpoints of Hugging Face, as the tests of targets and commands read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPT2Model,
    MixtralConfig,
    MixtralForCausalLM,
)

from initrate.frameworks.torch import apply
from initrate.rule import Rule

RULE = Rule(gamma=0.6, gamma_by_role={"qk": 0.7})


def gpt2_config(**options) -> GPT2Config:
    sizes: dict[str, Any] = {"n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 211}
    tokens: dict[str, Any] = {"n_positions": 32, "bos_token_id": 0, "eos_token_id": 0}
    return GPT2Config(**sizes | tokens | options)


def make_checkpoints(folder: Path) -> Path:
    """Write them into a folder: full, shards, bf16, base, headless, mixtral; each by RULE."""
    model = GPT2LMHeadModel(gpt2_config())
    apply(model, rule=RULE, seed=1)
    # A rule that is written down is a matter of its own; here the config has none.
    model.config.__dict__.pop("initrate", None)
    model.save_pretrained(folder / "full")
    model.save_pretrained(folder / "shards", max_shard_size="60KB")
    base = GPT2Model(gpt2_config())
    base.load_state_dict(model.transformer.state_dict())
    base.save_pretrained(folder / "base")
    base.save_pretrained(folder / "headless")
    # The config of a language model beside the tensors of a bare one: names without a prefix.
    (folder / "headless" / "config.json").write_text((folder / "full/config.json").read_text())
    sizes: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    heads: dict[str, Any] = {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_local_experts": 4,
    }
    experts = MixtralForCausalLM(MixtralConfig(**sizes, **heads, vocab_size=211))
    apply(experts, gamma=0.6, seed=1)
    experts.config.__dict__.pop("initrate", None)
    experts.save_pretrained(folder / "mixtral")
    model.bfloat16().save_pretrained(folder / "bf16")
    return folder


def changed_config(folder: Path, name: str, **changes) -> Path:
    """Write the config of the full model, changed, into a folder of its own."""
    config = json.loads((folder / "full" / "config.json").read_text()) | changes
    (folder / name).mkdir()
    path = folder / name / "config.json"
    path.write_text(json.dumps({key: x for key, x in config.items() if x is not None}))
    return path

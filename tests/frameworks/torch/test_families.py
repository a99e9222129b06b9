"""Layouts of families: the data files hold together, and their parts are where the models read.

Where a part lies is checked against the models themselves: a value's rows that are zero leave
attention nothing to give out, whatever queries and keys are; queries that are zero make it blind
to the keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import nn

from initrate.frameworks._layout import AXES
from initrate.frameworks.torch import plan
from initrate.frameworks.torch._families import KEYS, families, family_axes, parts_at
from initrate.frameworks.torch._walk import walk
from initrate.rule import Rule
from initrate.rule._roles import check_role

MODELS = Path(transformers.__file__).parent / "models"


def entries() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for owner, table in families().items():
        for path, found in table.items():
            for entry in found:
                yield owner, path, dict(entry)


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    """The source of every class of the models of transformers."""
    found: dict[str, str] = {}
    for path in MODELS.glob("*/*.py"):
        if path.name.startswith(("modeling_", "quant_modules")):
            for block in re.split(
                r"^(?= {0,4}class |def |@)", path.read_text(encoding="utf-8"), flags=re.M
            ):
                if block.lstrip().startswith("class "):
                    name = re.split(r"\W", block.lstrip(), maxsplit=2)[1]
                    found.setdefault(name, block)
    return found


def test_entries_say_what_entries_may_say():
    for owner, path, entry in entries():
        where = f"{owner} {path}"
        assert set(entry) <= set(KEYS), where
        assert set(entry.get("axes", ())) <= set(AXES), where
        listed = [role for role, _ in entry.get("parts", ())]
        for role in (*entry.get("roles", ()), *entry.get("chunks", ()), *listed):
            check_role(role)
        if "role" in entry:
            check_role(entry["role"])
        said = [key in entry for key in ("role", "roles", "parts", "chunks", "keep", "refuse")]
        assert sum(said) <= 1, where
        assert "axes" in entry or "keep" in entry or "refuse" in entry or entry["role"] == "bias"


def test_every_class_is_one_of_transformers(sources: dict[str, str]):
    elsewhere = [owner for owner in families() if owner.startswith("timm.")]
    assert elsewhere
    unknown = {owner for owner in families() if owner.rpartition(".")[2] not in sources}
    assert unknown - set(elsewhere) == set()


def test_routers_are_used_as_out_in(sources: dict[str, str]):
    routers = [owner for owner in families() if "Router" in owner and "weight" in families()[owner]]
    assert len(routers) > 50
    used = re.compile(r"linear\([^=]*self\.weight|self\.weight\.t\(\)")
    assert [owner for owner in routers if not used.search(sources[owner])] == []


def test_a_class_of_the_same_name_elsewhere_is_not_meant():
    class BloomAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head_dim = 4
            self.query_key_value = nn.Linear(12, 36)

    assert family_axes(BloomAttention(), "query_key_value.weight", (36, 12)) is None
    assert plan(BloomAttention(), gamma=0.8).rows[0].action == "draw"
    apart = Rule(gamma=0.8, gamma_by_role={"qk": 0.5})
    assert plan(BloomAttention(), rule=apart).rows[0].action == "refuse"


def test_parts_that_do_not_fill_the_axis_are_one_part():
    assert len(parts_at(("key", "value"), [4, 4], 0, (8, 3))) == 2
    assert parts_at(("key", "value"), [4, 4], 0, (9, 3))[0].where is None
    assert parts_at(("key", "value"), [4, None], 0, (8, 3))[0].roles == ("key", "value")
    assert [part.roles for part in parts_at(("key", "value"), [8, 0], 0, (8, 3))] == [("key",)]
    twice = parts_at(("linear", "linear"), [4, 4], 0, (8, 3))
    assert [part.name for part in twice] == ["linear", "linear.1"]


SIZE = {"vocab_size": 50, "hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 4}
GPT2 = {"vocab_size": 50, "n_embd": 24, "n_layer": 1, "n_head": 4, "n_positions": 16}
FUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2Model", GPT2),
    "openai": ("OpenAIGPTModel", GPT2),
    "imagegpt": ("ImageGPTModel", GPT2),
    "gpt_neox": ("GPTNeoXModel", {**SIZE, "intermediate_size": 40}),
    "bloom": ("BloomModel", {"vocab_size": 50, "hidden_size": 24, "n_layer": 1, "n_head": 4}),
    "persimmon": (
        "PersimmonModel",
        {**SIZE, "hidden_size": 32, "intermediate_size": 40, "qk_layernorm": False},
    ),
    "falcon groups": (
        "FalconModel",
        {**SIZE, "num_kv_heads": 2, "new_decoder_architecture": True},
    ),
    "falcon one key": ("FalconModel", {**SIZE, "multi_query": True}),
    "falcon by head": ("FalconModel", {**SIZE, "multi_query": False}),
    "bigcode one key": ("GPTBigCodeModel", {**GPT2, "n_inner": 40}),
    "bigcode by head": ("GPTBigCodeModel", {**GPT2, "n_inner": 40, "multi_query": False}),
    "codegen": ("CodeGenModel", {**GPT2, "n_inner": 40, "rotary_dim": 4}),
    "mpt": ("MptModel", {"vocab_size": 50, "d_model": 24, "n_layers": 1, "n_heads": 4}),
    "phi3": (
        "Phi3Model",
        {**SIZE, "intermediate_size": 40, "num_key_value_heads": 2, "pad_token_id": 0},
    ),
    "modernbert": ("ModernBertModel", {**SIZE, "intermediate_size": 40, "pad_token_id": 0}),
    "deberta": ("DebertaModel", {**SIZE, "intermediate_size": 40}),
    "jetmoe": (
        "JetMoeModel",
        {
            **{"vocab_size": 50, "hidden_size": 24, "num_hidden_layers": 1},
            **{"num_key_value_heads": 2, "kv_channels": 6, "intermediate_size": 40},
            **{"num_local_experts": 2, "num_experts_per_tok": 2, "max_position_embeddings": 16},
        },
    ),
    "latent attention": (
        "DeepseekV3Model",
        {
            **SIZE,
            **{"intermediate_size": 40, "num_key_value_heads": 4, "q_lora_rank": 14},
            **{"kv_lora_rank": 10, "qk_rope_head_dim": 4, "qk_nope_head_dim": 6, "v_head_dim": 8},
        },
    ),
}


def made(cls: str, config: dict[str, Any]) -> nn.Module:
    torch.manual_seed(0)
    kind = getattr(transformers, cls)
    model = kind(kind.config_class(**config)).eval()
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if name.endswith("bias"):
                tensor.zero_()
            elif tensor.dim() > 1:
                tensor.normal_(0, 0.3)
    return model


def scaled(model: nn.Module, role: str, factor: float) -> None:
    """Multiply the values of a role, wherever they lie."""
    for found in walk(model):
        for record in found.records:
            if record.roles == (role,):
                view = found.tensor.data
                if record.where is not None:
                    at = record.where
                    cut = view.view(at.split(tuple(view.shape)))
                    view = cut.narrow(at.axis + 1, at.start, at.length)
                view.mul_(factor)


def given_out(model: nn.Module) -> torch.Tensor:
    """Return what enters the output maps of attention, for one batch of tokens."""
    outputs = [
        record.name.rpartition(".")[0]
        for found in walk(model)
        for record in found.records
        if record.roles == ("attention_output",)
    ]
    seen: list[torch.Tensor] = []
    hooks = [
        model.get_submodule(name).register_forward_pre_hook(lambda _, args: seen.append(args[0]))
        for name in outputs
    ]
    with torch.no_grad():
        model(torch.arange(1, 9)[None])
    for hook in hooks:
        hook.remove()
    return torch.cat([x.flatten() for x in seen])


@pytest.mark.parametrize("case", FUSED)
def test_values_are_where_the_model_reads_values(case: str):
    model = made(*FUSED[case])
    assert float(given_out(model).abs().max()) > 1e-3
    scaled(model, "value", 0.0)
    assert float(given_out(model).abs().max()) == 0


@pytest.mark.parametrize("case", FUSED)
def test_queries_and_keys_are_where_the_model_reads_them(case: str):
    for first, second in (("query", "key"), ("key", "query")):
        model = made(*FUSED[case])
        before = given_out(model)
        scaled(model, second, 3.0)
        assert not torch.allclose(before, given_out(model), rtol=1e-3)
        scaled(model, first, 0.0)
        blind = given_out(model)
        scaled(model, second, 5.0)
        assert torch.allclose(blind, given_out(model), rtol=1e-4, atol=1e-6)


GATED: dict[str, tuple[str, dict[str, Any]]] = {
    "phi3": FUSED["phi3"],
    "modernbert": FUSED["modernbert"],
    "jetmoe": FUSED["jetmoe"],
    "mixtral": (
        "MixtralModel",
        {**SIZE, "intermediate_size": 40, "num_key_value_heads": 2, "num_local_experts": 2},
    ),
    "llama4": (
        "Llama4TextModel",
        {
            **SIZE,
            **{"intermediate_size": 40, "intermediate_size_mlp": 40, "num_key_value_heads": 2},
            **{"num_local_experts": 2, "interleave_moe_layer_step": 1, "head_dim": 6},
        },
    ),
}


def mlp_of(model: nn.Module) -> nn.Module:
    names = [name for name, _ in model.named_modules() if re.search(r"\.(mlp|feed_forward)$", name)]
    return model.get_submodule(names[0])


@pytest.mark.parametrize("case", GATED)
def test_the_map_beside_the_gate_is_linear_and_the_gate_is_not(case: str):
    def out(change: Callable[[nn.Module], None]) -> torch.Tensor:
        model = made(*GATED[case])
        change(model)
        with torch.no_grad():
            found = mlp_of(model)(torch.randn(1, 5, 24, generator=torch.Generator().manual_seed(1)))
        return found[0] if isinstance(found, tuple) else found

    before = out(lambda model: None)
    up = out(lambda model: scaled(model, "mlp_in", 2.0))
    gate = out(lambda model: scaled(model, "mlp_gate", 2.0))
    assert torch.allclose(up, 2 * before, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(gate, 2 * before, rtol=1e-2, atol=1e-3)

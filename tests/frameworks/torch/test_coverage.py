"""Plans of published architectures: whole, tensor by tensor, and what was read in their sources.

A golden file holds a small config and its plan, with one line for all layers: the role, d_in,
what is done, in a stack of how many layers, and where a part lies (axis:start+length/period).
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import nn

from benchmarks import coverage
from initrate.frameworks.torch import apply, param_groups, plan
from initrate.rule import Plan, PlanRow, Rule

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.toml"))
RULE = Rule(gamma=0.8, gamma_by_role={"qk": 0.5}, residual="sqrt_2L")


def built(golden: Path) -> tuple[nn.Module, dict[str, str]]:
    found = tomllib.loads(golden.read_text(encoding="utf-8"))
    kind: Any = getattr(transformers, found["model"])
    with torch.device("meta"):
        return kind(kind.config_class(**found["config"])), found["plan"]


def line(row: PlanRow) -> str:
    said = f"{row.role} {row.d_in if row.action == 'draw' else '-'} {row.action}"
    if row.record.n_layers:
        said += f" of {row.record.n_layers}"
    at = row.record.where
    if at is not None:
        said += f" at {at.axis}:{at.start}+{at.length}" + (f"/{at.period}" if at.period else "")
    return said


def collapsed(found: Plan) -> dict[str, str]:
    """Return a line for every name, with its layers' numbers left out."""
    lines: dict[str, list[str]] = {}
    for row in found:
        name = ".".join("*" if word.isdigit() else word for word in row.name.split("."))
        said = lines.setdefault(name, [])
        if line(row) not in said:
            said.append(line(row))
    return {name: " | ".join(said) for name, said in lines.items()}


@pytest.mark.parametrize("golden", GOLDEN, ids=[path.stem for path in GOLDEN])
def test_golden_plans(golden: Path):
    model, expected = built(golden)
    assert collapsed(plan(model, rule=RULE)) == expected


# Read in the modeling files: how the tensor is made and what it is multiplied with.
READ = [
    # Conv1D(nf, nx): addmm(bias, x, weight), so [in, out].
    ("gpt2", "transformer.h.0.attn.c_attn.weight#query", 24, "query"),
    ("gpt2", "transformer.h.0.mlp.c_proj.weight", 40, "mlp_out"),
    # nn.Linear(hidden, 4 hidden) and back.
    ("bloom", "transformer.h.1.mlp.dense_4h_to_h.weight", 96, "mlp_out"),
    # bmm(hidden, gate_up_proj): [experts, in, out].
    ("gpt_oss", "model.layers.0.mlp.experts.gate_up_proj#mlp_in", 24, "mlp_in"),
    ("gpt_oss", "model.layers.0.mlp.experts.down_proj", 40, "mlp_out"),
    ("llama4", "model.layers.1.feed_forward.experts.down_proj", 40, "mlp_out"),
    # linear(state, gate_up_proj[expert]): [experts, out, in].
    ("mixtral", "model.layers.0.mlp.experts.down_proj", 40, "mlp_out"),
    ("qwen2_moe", "model.layers.0.mlp.experts.down_proj", 28, "mlp_out"),
    ("qwen2_moe", "model.layers.0.mlp.shared_expert.down_proj.weight", 36, "mlp_out"),
    # x.matmul(w1.T), x.matmul(w2) with [experts * 40, 24].
    ("dbrx", "transformer.blocks.0.ffn.experts.mlp.w1", 24, "mlp_gate"),
    ("dbrx", "transformer.blocks.0.ffn.experts.mlp.v1", 24, "mlp_in"),
    ("dbrx", "transformer.blocks.0.ffn.experts.mlp.w2", 40, "mlp_out"),
    # kv_a_proj_with_mqa: 24 to 10 + 4; kv_b_proj: 10 to heads * (6 + 8); o_proj: heads * 8 to 24.
    ("deepseek_v3", "model.layers.1.self_attn.kv_b_proj.weight#value", 10, "value"),
    ("deepseek_v3", "model.layers.1.self_attn.q_b_proj.weight", 14, "query"),
    ("deepseek_v3", "model.layers.1.self_attn.o_proj.weight", 32, "attention_output"),
    # x_proj: from 2 * 24 to 5 + 2 * 4; dt_proj: from 5; a depthwise convolution of 4 places.
    ("mamba", "backbone.layers.0.mixer.x_proj.weight", 48, "linear"),
    ("mamba", "backbone.layers.0.mixer.dt_proj.weight", 5, "linear"),
    ("mamba2", "backbone.layers.0.mixer.conv1d.weight", 4, "convolution"),
    # o: heads * d_kv = 4 * 5 to 24; the table of biases has a row of 4 heads.
    ("t5", "encoder.block.0.layer.0.SelfAttention.o.weight", 20, "attention_output"),
    ("t5", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 4, "position"),
    ("t5", "decoder.block.1.layer.2.DenseReluDense.wo.weight", 40, "mlp_out"),
    ("bart", "model.decoder.layers.1.fc2.weight", 44, "mlp_out"),
    ("bert", "bert.encoder.layer.0.output.dense.weight", 40, "mlp_out"),
    ("roberta", "classifier.out_proj.weight", 24, "linear"),
    ("distilbert", "distilbert.transformer.layer.0.ffn.lin2.weight", 40, "mlp_out"),
    # Patches of 3 * 4 * 4.
    ("vit", "vit.embeddings.patch_embeddings.projection.weight", 48, "convolution"),
    ("clip", "vision_model.embeddings.patch_embedding.weight", 48, "convolution"),
    ("clip", "visual_projection.weight", 28, "linear"),
    # 4 groups of 24 channels, 6 places, under weight norm.
    ("wav2vec2", "encoder.pos_conv_embed.conv.weight", 36, "convolution"),
    ("wav2vec2", "feature_extractor.conv_layers.1.conv.weight", 24, "convolution"),
    ("whisper", "model.encoder.conv1.weight", 21, "convolution"),
    ("phi3", "model.layers.0.self_attn.qkv_proj.weight#key", 24, "key"),
    # einsum("ibnd,hnd->ibh", vector, o): n and d are contracted.
    ("xlnet", "transformer.layer.0.rel_attn.o", 24, "attention_output"),
    ("xlnet", "transformer.layer.0.rel_attn.seg_embed", 6, "token_embedding"),
    ("rwkv", "rwkv.blocks.0.attention.output.weight", 32, "attention_output"),
]


def test_what_was_read_in_the_sources():
    plans = {path.stem: plan(built(path)[0], rule=RULE) for path in GOLDEN}
    for name, tensor, d_in, role in READ:
        row = next(row for row in plans[name] if row.name == tensor)
        assert (row.d_in, row.role) == (d_in, role), (name, tensor)


def near(found: torch.Tensor, std: float) -> bool:
    """Return whether the std of normals is this one, within five of its errors."""
    return abs(float(found.std()) / std - 1) < 5 / (2 * found.numel()) ** 0.5


def test_gpt2_has_the_d_in_of_its_conv1d():
    with torch.device("meta"):
        model = transformers.GPT2Model(transformers.GPT2Config(n_layer=1))
    rows = {row.name: row for row in plan(model, gamma=0.8)}
    stds = {"attn.c_attn.weight#query": 0.00492, "mlp.c_fc.weight": 0.00492}
    for name, std in {**stds, "mlp.c_proj.weight": 0.00162}.items():
        row = rows[f"h.0.{name}"]
        assert row.std == pytest.approx(std, abs=5e-6)
        # What reading [out, in] would give, as the code of arXiv 2501.08537 does.
        wrong = model.get_parameter(f"h.0.{name.partition('#')[0]}").size(1)
        assert row.d_in != wrong


def test_tied_embeddings_are_one_row_drawn_once():
    config = transformers.GPT2Config(vocab_size=500, n_embd=64, n_layer=1, n_head=2)
    model = transformers.GPT2LMHeadModel(config)
    audit = apply(model, rule=Rule(gamma=0.8, gamma_by_role={"embedding": 0.5}), seed=1, force=True)
    tied = [row for row in plan(model, gamma=0.8) if "lm_head.weight" in row.record.aliases]
    assert [row.name for row in tied] == ["transformer.wte.weight"]
    assert model.lm_head.weight is model.transformer.wte.weight
    assert near(model.lm_head.weight.detach(), 64**-0.5)
    total = sum(row.size for row in plan(model, gamma=0.8))
    assert total == sum(p.numel() for p in model.parameters())
    assert audit.ok
    grouped = [id(p) for group in param_groups(model, weight_decay=0.1) for p in group["params"]]
    assert grouped.count(id(model.lm_head.weight)) == 1


class Attention(nn.Module):
    """Stands in for timm's: one map for queries, keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)


# Layouts of families go by the module that defines a class, which here is another library.
Attention.__module__ = "timm.layers.attention"


class LayerScale(nn.Module):
    """A gain for each channel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.full((width,), 1e-5))


class Block(nn.Module):
    """A layer of a vision transformer, with the names of timm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ls1 = LayerScale(width)
        self.mlp = nn.Module()
        self.mlp.fc1 = nn.Linear(width, 4 * width)
        self.mlp.fc2 = nn.Linear(4 * width, width)


class VisionTransformer(nn.Module):
    """A small vision transformer, with the names of timm."""

    def __init__(self, width: int = 64, depth: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 17, width))
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(3, width, 4, stride=4)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)


def test_vision_transformer_in_the_words_of_timm():
    found = collapsed(plan(VisionTransformer(), rule=RULE))
    expected = {
        "cls_token": "token_embedding 64 draw",
        "pos_embed": "position 64 draw",
        "patch_embed.proj.weight": "convolution 48 draw",
        "blocks.*.attn.qkv.weight#query": "query 64 draw at 0:0+64",
        "blocks.*.attn.qkv.weight#key": "key 64 draw at 0:64+64",
        "blocks.*.attn.qkv.weight#value": "value 64 draw at 0:128+64",
        "blocks.*.attn.proj.weight": "attention_output 64 draw of 2",
        "blocks.*.ls1.gamma": "structured - keep",
        "blocks.*.mlp.fc1.weight": "mlp_in 64 draw",
        "blocks.*.mlp.fc2.weight": "mlp_out 256 draw of 2",
        "head.weight": "linear 64 draw",
        "blocks.*.norm1.weight": "norm - keep",
    }
    assert {name: found[name] for name in expected} == expected


def test_the_slices_of_a_fused_map_follow_their_own_rule():
    rule = Rule(gamma=0.9, gamma_by_role={"qk": 0.5})
    config = transformers.GPTNeoXConfig(
        vocab_size=50, hidden_size=64, intermediate_size=80, num_hidden_layers=1,
        num_attention_heads=4,
    )  # fmt: skip
    neox, vision = transformers.GPTNeoXModel(config), VisionTransformer(depth=1)
    for model in (neox, vision):
        apply(model, rule=rule, force=True)
    fused = neox.get_parameter("layers.0.attention.query_key_value.weight")
    by_head = fused.detach().view(4, 3, 16, 64)
    in_blocks = vision.get_parameter("blocks.0.attn.qkv.weight").detach().view(3, 64, 64)
    for part, gamma in enumerate((0.5, 0.5, 0.9)):
        assert near(by_head[:, part], 64**-gamma)
        assert near(in_blocks[part], 64**-gamma)


def test_truncated_normals_of_timm_keep_their_std_after_scaling():
    model = VisionTransformer(depth=1)
    nn.init.trunc_normal_(model.head.weight, std=0.02)
    apply(model, gamma=1.5, force=True)
    drawn = model.get_parameter("blocks.0.attn.qkv.weight").detach()
    assert near(drawn, 64**-1.5)
    assert float(drawn.abs().max()) < 8 * 64**-1.5


def test_coverage_counts_what_plans_do():
    found = coverage.covered("CausalLM", ["gpt2", "no-such-model"])
    assert [counts.model_type for counts in found.counts] == ["gpt2"]
    assert dict(found.not_built) == {"KeyError": 1}
    counts = found.counts[0]
    assert counts.refused == counts.refused_by_role == ()
    assert counts.certain == 1
    model = coverage.build("CausalLM", "gpt2")
    expected = plan(model, rule=coverage.UNIFORM)
    assert {a: expected.count(a) for a in ("draw", "zero", "keep", "refuse")} == counts.by_action


def test_the_page_of_coverage_names_what_is_refused():
    model = nn.Sequential()
    model.register_parameter("odd", nn.Parameter(torch.zeros(3, 3)))
    uniform = plan(model, rule=coverage.UNIFORM)
    counts = coverage.Counts.of("odd", uniform, uniform)
    assert counts.certain == 0
    text = coverage.page([coverage.Covered("AutoModel", [counts])])
    assert "- `odd`: `odd` is a parameter of Sequential, whose layout is not known" in text
    assert "| AutoModel | 1 of 1 | 0 of 1 (0.0%) |" in text
    assert f"transformers {transformers.__version__}" in text


def test_the_page_in_docs_is_of_what_coverage_writes():
    text = (Path(__file__).parents[3] / "docs" / "huggingface-coverage.md").read_text()
    empty = coverage.page([coverage.Covered("AutoModel")])
    assert text.split("|")[0] == empty.split("|")[0]
    built = text.split("| AutoModel |")[1].split("|")
    share = float(built[1].split("(")[1].split("%")[0])
    assert share >= 95

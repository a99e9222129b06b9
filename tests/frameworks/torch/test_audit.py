"""The audit of torch models: fresh, drawn, wrong on purpose, and as libraries make them."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
import torch
import transformers
from torch import nn

import initrate
from initrate.errors import FindingError, InputError
from initrate.frameworks.huggingface import write_rule
from initrate.frameworks.torch import apply, audit
from initrate.rule import Audit, Rule, named_rule

VOCABULARY = 211
SMALL = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": VOCABULARY,
}
GPT2 = {
    "n_layer": 2,
    "n_embd": 64,
    "n_head": 4,
    "vocab_size": VOCABULARY,
    "n_positions": 32,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
VIT = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
}
MODELS = {
    "GPT2LMHeadModel": ("GPT2Config", GPT2),
    "LlamaForCausalLM": ("LlamaConfig", SMALL),
    "BertForMaskedLM": ("BertConfig", SMALL),
    "ViTForImageClassification": ("ViTConfig", VIT),
    "GPTNeoXForCausalLM": ("GPTNeoXConfig", SMALL),
}


def build(name: str, config: str, options: dict) -> nn.Module:
    torch.manual_seed(0)
    return getattr(transformers, name)(getattr(transformers, config)(**options))


def gpt2() -> nn.Module:
    return build("GPT2LMHeadModel", *MODELS["GPT2LMHeadModel"])


def codes(found: Audit) -> list[str]:
    return sorted({finding.code for finding in found.findings})


def names(found: Audit, code: str) -> set[str]:
    return {name for finding in found.findings if finding.code == code for name in finding.names}


@pytest.mark.parametrize("name", MODELS)
def test_fresh_and_drawn_models_have_no_finding(name: str):
    model = build(name, *MODELS[name])
    found = audit(model)
    assert found.ok, found.findings
    assert found.rule is None
    apply(model, gamma=0.6, seed=1)
    found = audit(model, gamma=0.6)
    assert found.ok, found.findings
    assert all(row.as_planned for row in found.rows if row.plan.std is not None)


def test_default_torch_layers_have_no_finding():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(64, 64), nn.LayerNorm(64), nn.Linear(64, 256), nn.Conv1d(4, 8, 3)
    )
    assert audit(model).ok


def test_another_gamma_is_found():
    model = gpt2()
    apply(model, gamma=0.6)
    found = audit(model, gamma=0.7)
    assert codes(found) == ["IR101"]
    assert len(names(found, "IR101")) == 14


@pytest.mark.parametrize("gamma", [0.3, 0.8])
def test_the_fan_out_of_conv1d_taken_for_its_inputs(gamma: float):
    """What published code does on GPT-2: size(1) ** -gamma, which is d_out of an [in, out] map."""
    model = gpt2()
    apply(model, gamma=gamma)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("c_attn.weight", "c_fc.weight", "c_proj.weight")):
                parameter.normal_(std=parameter.size(1) ** -gamma)
    found = audit(model, gamma=gamma, waive=["IR107"])
    assert codes(found) == ["IR102"]
    layers = {f"transformer.h.{i}" for i in range(2)}
    parts = {f"attn.c_attn.weight#{role}" for role in ("query", "key", "value")}
    # The attention's output is square, so that both readings of it are one.
    wrong = {"mlp.c_fc.weight", "mlp.c_proj.weight", *parts}
    assert names(found, "IR102") == {f"{layer}.{part}" for layer in layers for part in wrong}


OVERLOOKED = {
    "OpenAIGPTLMHeadModel": ("OpenAIGPTConfig", GPT2, ("c_attn", "c_fc", "c_proj")),
    "ImageGPTModel": ("ImageGPTConfig", GPT2, ("c_attn", "c_fc")),
    "DecisionTransformerModel": (
        "DecisionTransformerConfig",
        {"n_layer": 2, "hidden_size": 64, "n_head": 4},
        ("c_attn", "c_fc"),
    ),
}


@pytest.mark.parametrize("name", OVERLOOKED)
def test_what_initializer_range_does_not_reach(name: str):
    config, options, at_two_hundredths = OVERLOOKED[name]
    found = audit(build(name, config, {**options, "initializer_range": 0.001}))
    stds = {row.name: row.std for row in found.rows}
    overlooked = [x for x in stds if any(f".{word}.weight" in x for word in at_two_hundredths)]
    assert overlooked and all(abs(stds[x] - 0.02) < 0.001 for x in overlooked)
    tables = [x for x in stds if x.endswith(("embed.weight", "wte.weight", "wpe.weight"))]
    assert len(tables) >= 2 and all(abs(stds[x] - 0.001) < 0.0002 for x in tables)


def test_clones_of_one_layer_are_found():
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = nn.TransformerEncoder(layer, 3)
    found = audit(model)
    assert codes(found) == ["IR103"]
    assert {f"layers.{i}.linear1.weight" for i in range(3)} <= names(found, "IR103")
    apply(model, gamma=0.6)
    assert audit(model, gamma=0.6).ok


def test_a_default_bias_beside_small_weights():
    model = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 64))
    found = apply(model, rule=Rule(gamma=0.9, bias="keep"))
    assert names(found, "IR105") == {"0.bias", "2.bias"}
    assert apply(model, rule=Rule(gamma=0.9), seed=1).ok


def test_the_default_embedding_of_torch():
    model = nn.Sequential(nn.Embedding(200, 64), nn.Linear(64, 64))
    assert names(audit(model), "IR106") == {"0.weight"}
    assert apply(model, gamma=0.5).ok


def test_an_eps_that_bites():
    model = gpt2()
    found = apply(model, gamma=1.3)
    assert codes(found) == ["IR107"]
    assert names(found, "IR107") == {"transformer.h.0.ln_1.weight"}
    assert audit(model, gamma=1.3, waive=["IR107"]).ok
    assert apply(model, gamma=0.6).ok


def test_a_table_that_is_multiplied_does_not_starve_the_norm():
    sizes = SMALL | {"head_dim": 16, "num_key_value_heads": 2, "rms_norm_eps": 1e-4}
    model = build("GemmaForCausalLM", "GemmaConfig", sizes)
    assert apply(model, gamma=0.9).ok
    assert audit(model, gamma=0.9).ok
    model.get_submodule("model.embed_tokens").scalar_embed_scale = 1.0  # pyright: ignore
    assert codes(audit(model, gamma=0.9)) == ["IR107"]


def test_groups_of_an_optimizer():
    model = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.Linear(64, 64))
    everything = list(model.parameters())
    assert audit(model, optimizer=torch.optim.SGD(everything, lr=0.1)).ok
    some = torch.optim.SGD(everything[:-1], lr=0.1)
    found = audit(model, optimizer=some)
    assert codes(found) == ["IR108"] and names(found, "IR108") == {"2.bias"}
    twice = torch.optim.SGD(everything, lr=0.1)
    # torch itself refuses this in its constructor, and not afterwards.
    twice.param_groups.append({**twice.param_groups[0], "params": everything[:1]})
    found = audit(model, optimizer=twice)
    assert codes(found) == ["IR109"] and names(found, "IR109") == {"0.weight"}


def batch() -> dict[str, torch.Tensor]:
    ids = torch.randint(0, VOCABULARY, (4, 16), generator=torch.Generator().manual_seed(0))
    return {"input_ids": ids, "labels": ids}


def lm(gamma: float) -> nn.Module:
    torch.manual_seed(0)
    options: dict[str, Any] = {**GPT2, "loss_type": "ForCausalLMLoss"}
    config = transformers.GPT2Config(**options)
    model = transformers.GPT2LMHeadModel(config)
    apply(model, gamma=gamma)
    return model


def test_the_initial_loss():
    small, large = lm(0.7), lm(0.0)
    assert codes(audit(small, batch=batch())) == []
    found = audit(large, batch=batch())
    assert "IR110" in codes(found)
    assert "IR110" not in codes(audit(large))
    assert f"that of equal probabilities {math.log(VOCABULARY):.2f}" in str(found.findings[-1])


class PairModel(nn.Module):
    """A model of a training script: logits and loss as a pair."""

    def __init__(self, std: float) -> None:
        super().__init__()
        self.fc = nn.Linear(64, 10)
        self.drop = nn.Dropout(0.5)
        nn.init.normal_(self.fc.weight, std=std)

    def forward(self, x: torch.Tensor, y: torch.Tensor):
        logits = self.drop(self.fc(x))
        return logits, nn.functional.cross_entropy(logits, y)


def test_the_initial_loss_of_a_pair_and_the_model_is_as_before():
    x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))
    model = PairModel(0.02).train()
    model.drop.eval()
    assert "IR110" not in codes(audit(model, batch=(x, y)))
    assert "IR110" in codes(audit(PairModel(3.0), batch=(x, y)))
    assert model.training and model.fc.training and not model.drop.training
    assert model.fc.weight.grad is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"input_ids": torch.zeros(1, 4, dtype=torch.long)}, "gives no loss for the batch"),
        ("text", "batch is str: expected a mapping"),
        (torch.zeros(1, 4, dtype=torch.long), "gives no loss"),
    ],
)
def test_a_batch_that_gives_no_loss(given: object, words: str):
    with pytest.raises(InputError, match=words):
        audit(lm(0.7), batch=given)


def test_what_is_not_covered():
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kernel = nn.Parameter(torch.randn(64, 64) * 64**-0.6)

    model = nn.Sequential(nn.Linear(64, 64), Own())
    apply(model[0], gamma=0.6)
    found = audit(model, gamma=0.6)
    assert codes(found) == ["IR111"] and names(found, "IR111") == {"1.kernel"}
    assert codes(audit(model, gamma=0.6, unknown="keep")) == ["IR111"]
    layout = initrate.Layout(Own, kernel=("in", "out"))
    assert audit(model, gamma=0.6, layouts=[layout]).ok
    assert audit(model, gamma=0.6, exclude="1.*").ok
    assert audit(model, gamma=0.6, include=["0.*"]).ok
    assert audit(model).ok


def test_values_that_are_not_finite():
    model = nn.Linear(64, 64)
    with torch.no_grad():
        model.weight[3, 4] = math.nan
    assert codes(audit(model)) == ["IR112"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_short_types_are_measured_as_they_are(dtype: torch.dtype):
    model = gpt2()
    apply(model, gamma=0.6)
    assert audit(model.to(dtype), gamma=0.6).ok


def test_the_std_is_that_of_the_values():
    model = nn.Linear(64, 256)
    row = audit(model, gamma=0.5).rows[0]
    assert row.std == pytest.approx(float(model.weight.detach().double().pow(2).mean().sqrt()))
    assert row.gamma == pytest.approx(-math.log(row.std) / math.log(64))


def test_the_rule_that_the_config_has_written_down():
    model = gpt2()
    apply(model, gamma=0.6)
    write_rule(model.config, Rule(gamma=0.6), 0)
    found = audit(model)
    assert found.ok and found.rule == Rule(gamma=0.6)
    assert audit(nn.DataParallel(model)).rule == Rule(gamma=0.6)
    write_rule(model.config, Rule(gamma=0.7), 0)
    assert codes(audit(model)) == ["IR101"]
    assert audit(model, gamma=0.6).ok


def test_parts_of_a_fused_map_are_measured_apart():
    model = gpt2()
    apply(model, rule=Rule(gamma=0.6, gamma_by_role={"qk": 0.9}))
    rates = audit(model).gamma_by_role()
    assert rates["query"] == pytest.approx(0.9, abs=0.02)
    assert rates["value"] == pytest.approx(0.6, abs=0.02)


def test_tied_weights_are_one_row():
    model = gpt2()
    rows = [row for row in audit(model).rows if row.plan.role in ("token_embedding", "unembedding")]
    assert [row.name for row in rows] == ["transformer.wte.weight"]
    assert rows[0].plan.record.aliases == ("lm_head.weight",)


def test_a_meta_model_has_no_values():
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(4, 4))
    with pytest.raises(InputError, match=r"'0\.weight' is on the meta device and has no values"):
        audit(model, gamma=0.5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gamma": 0.5, "rule": Rule(gamma=0.5)}, "give one of the two"),
        ({"gamma": "0.5"}, "rule gamma is '0.5'"),
        ({"gamma": math.inf}, "rule gamma is inf"),
        ({"rule": "gpt3"}, "did you mean 'gpt2'"),
        ({"rule": 3}, "rule is 3: expected a Rule"),
        ({"gamma": 0.5, "waive": ["IR1"]}, "unknown finding to waive 'IR1'"),
    ],
)
def test_bad_input_is_one_line(options: dict, words: str):
    with pytest.raises(InputError, match=words):
        audit(nn.Linear(4, 4), **options)


def test_assert_init():
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    apply(model, gamma=0.8)
    assert initrate.assert_init(model, Rule(gamma=0.8)) is None
    assert initrate.assert_init(model, gamma=0.8) is None
    assert initrate.assert_init(model, "formula", gamma=0.8) is None
    with pytest.raises(AssertionError, match=r"IR101 0\.weight: .*; IR101 2\.weight: ") as raised:
        initrate.assert_init(model, gamma=0.7)
    assert isinstance(raised.value, FindingError) and "\n" not in str(raised.value)
    assert initrate.assert_init(model, gamma=0.7, waive=["IR101"]) is None
    with pytest.raises(InputError, match="neither gamma nor rule is given"):
        initrate.assert_init(model)


def test_a_named_rule():
    model = gpt2()
    apply(model, rule=named_rule("gpt2"))
    assert audit(model, rule="gpt2").ok
    assert initrate.audit(model, rule="gpt2").ok
    # What transformers draws by itself is that rule too.
    assert audit(gpt2(), rule="gpt2").ok

"""Quantized modules by their class; adapters by what they stand beside."""

from __future__ import annotations

import warnings

import peft
import pytest
import torch
import transformers
from torch import nn

from initrate.errors import InputError
from initrate.frameworks.torch import apply, plan
from initrate.rule import Plan, PlanRow, Rule


def stand_in(module: str, name: str, weight: nn.Parameter) -> nn.Module:
    """Return a module of a class that looks as if that package had made it."""
    made = type(name, (nn.Module,), {})
    made.__module__ = module
    found = made()
    found.register_parameter("weight", weight)
    return found


INTEGERS = (8, 4)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("bitsandbytes.nn.modules", "Linear4bit"),
        ("bitsandbytes.nn.modules", "Linear8bitLt"),
        ("auto_gptq.nn_modules.qlinear", "QuantLinear"),
        ("gptqmodel.nn_modules.qlinear.marlin", "MarlinLinear"),
        ("awq.modules.linear.gemm", "WQLinear_GEMM"),
        ("hqq.core.quantize", "HQQLinear"),
        ("optimum.quanto.nn.qlinear", "QLinear"),
        ("quanto.nn.qlinear", "QLinear"),
        ("eetq.modules.qlinear", "W8A16Linear"),
        ("aqlm.inference", "QuantizedLinear"),
        ("torchao.quantization.linear", "Int8Linear"),
        ("compressed_tensors.linear.compressed_linear", "CompressedLinear"),
    ],
)
@pytest.mark.parametrize("storage", [torch.uint8, torch.bfloat16])
@pytest.mark.parametrize("beside", ["trainable", "frozen"])
def test_a_quantized_module_is_refused_by_class(
    module: str, name: str, storage: torch.dtype, beside: str
) -> None:
    weight = nn.Parameter(torch.ones(INTEGERS).to(storage), requires_grad=False)
    model = nn.ModuleDict({"q_proj": stand_in(module, name, weight), "fc": nn.Linear(4, 4)})
    model["fc"].requires_grad_(beside == "trainable")
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with pytest.raises(InputError, match=rf"'q_proj\.weight' is held by the quantized {name}"):
        apply(model, gamma=0.5)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


def test_a_parameter_of_a_quantized_class_is_refused_in_a_plain_module() -> None:
    params = type("Params4bit", (nn.Parameter,), {})
    params.__module__ = "bitsandbytes.nn.modules"
    model = nn.Sequential(nn.Linear(4, 4, bias=False))
    model[0].weight = params(torch.ones(4, 4))
    with pytest.raises(InputError, match="quantized Params4bit"):
        apply(model, gamma=0.5)


@pytest.mark.parametrize(
    ("dtype", "word"), [(torch.int8, "int8"), (torch.complex64, "complex64"), (torch.bool, "bool")]
)
def test_numbers_that_are_not_real_are_refused_by_name(dtype: torch.dtype, word: str) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4, bias=False))
    model[1].weight = nn.Parameter(torch.ones(4, 4).to(dtype), requires_grad=False)
    model[0].requires_grad_(False)
    before = model.get_parameter("0.weight").clone()
    with pytest.raises(InputError, match=rf"'1\.weight' holds torch\.{word}"):
        apply(model, gamma=0.5)
    assert torch.equal(model.get_parameter("0.weight"), before)


def gpt2() -> transformers.PreTrainedModel:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_layer=1, n_embd=16, n_head=2, vocab_size=30, n_positions=8, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config)


def adapted(**options: object) -> nn.Module:
    config = peft.LoraConfig(r=4, target_modules=["c_attn", "c_fc"], fan_in_fan_out=True, **options)  # pyright: ignore[reportArgumentType]
    with warnings.catch_warnings():
        # Of peft, which asks transformers for an attribute by its old name.
        warnings.simplefilter("ignore", FutureWarning)
        return peft.get_peft_model(gpt2(), config)  # pyright: ignore[reportArgumentType]


def rows(found: Plan) -> dict[str, PlanRow]:
    return {row.name: row for row in found}


def test_of_a_model_with_adapters_the_adapters_are_drawn_and_the_base_is_kept() -> None:
    model = adapted()
    before = {name: p.clone() for name, p in model.named_parameters()}
    rule = Rule(gamma=0.8)
    planned = rows(plan(model, rule=rule))
    audit = apply(model, rule=rule, seed=1)
    assert audit.ok
    base = planned["transformer.h.0.attn.c_attn.weight#query"]
    assert (base.action, base.reason) == ("keep", "frozen: requires_grad is False")
    first = planned["transformer.h.0.mlp.c_fc.lora_A.default.weight"]
    assert (first.action, first.d_in, first.role) == ("draw", 16, "mlp_in")
    second = planned["transformer.h.0.mlp.c_fc.lora_B.default.weight"]
    assert second.action == "zero" and "second map" in second.reason
    changed = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert changed and all("lora_A" in name for name in changed)
    measured = {row.name: row for row in audit.rows}
    assert measured[first.name].std == pytest.approx(16**-0.8, rel=0.5)
    assert measured[second.name].measured.largest == 0


def test_the_base_of_an_adapter_may_be_trained_and_the_adapter_itself_may_not() -> None:
    model = adapted()
    with torch.no_grad():
        model.get_parameter("base_model.model.transformer.ln_f.weight")[3] = 2.0
        second = model.get_parameter(
            "base_model.model.transformer.h.0.mlp.c_fc.lora_B.default.weight"
        )
    assert apply(model, gamma=0.8).ok
    with torch.no_grad():
        second[0, 0] = 0.1
    with pytest.raises(InputError, match="is not zero, as an adapter's second map is at first"):
        apply(model, gamma=0.8)
    assert apply(model, gamma=0.8, force=True).ok and not second.any()


def test_the_magnitude_of_dora_and_copies_of_modules_are_kept() -> None:
    model = adapted(use_dora=True, modules_to_save=["wpe"])
    before = {name: p.clone() for name, p in model.named_parameters()}
    planned = rows(plan(model, gamma=0.8))
    apply(model, gamma=0.8)
    magnitude = planned["transformer.h.0.mlp.c_fc.lora_magnitude_vector.default.weight"]
    copy = planned["transformer.wpe.modules_to_save.default.weight"]
    assert (magnitude.action, magnitude.reason) == ("keep", "the magnitude of an adapter")
    assert copy.action == "keep" and "modules_to_save" in copy.reason
    changed = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert changed and all("lora_A" in name for name in changed)


def test_the_adapters_of_embeddings_and_convolutions_have_the_d_in_of_their_maps() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(20, 8)
            self.conv = nn.Conv2d(3, 6, 3)

    config = peft.LoraConfig(r=2, target_modules=["embed", "conv"])
    model = peft.get_peft_model(Net(), config)  # pyright: ignore[reportArgumentType]
    planned = rows(plan(model, gamma=0.5))
    found = {name: (row.action, row.d_in) for name, row in planned.items() if "lora" in name}
    assert found == {
        "embed.lora_embedding_A.default": ("zero", 20),
        "embed.lora_embedding_B.default": ("draw", 2),
        "conv.lora_A.default.weight": ("draw", 27),
        "conv.lora_B.default.weight": ("zero", 2),
    }
    assert apply(model, gamma=0.5).ok


def test_the_quantized_base_of_an_adapter_is_kept() -> None:
    weight = nn.Parameter(torch.ones(INTEGERS, dtype=torch.uint8), requires_grad=False)
    layer = nn.Module()
    layer.base_layer = stand_in("bitsandbytes.nn.modules", "Linear4bit", weight)
    layer.lora_A = nn.ModuleDict({"default": nn.Linear(8, 2, bias=False)})
    second = nn.Linear(2, 8, bias=False)
    nn.init.zeros_(second.weight)
    layer.lora_B = nn.ModuleDict({"default": second})
    model = nn.ModuleDict({"q_proj": layer})
    assert {row.name: row.action for row in plan(model, gamma=0.5)} == {
        "q_proj.weight": "keep",
        "q_proj.lora_A.default.weight": "draw",
        "q_proj.lora_B.default.weight": "zero",
    }
    assert apply(model, gamma=0.5).ok


def test_a_base_of_adapters_goes_by_its_own_names() -> None:
    model = gpt2()
    names = {row.name for row in plan(model, gamma=0.8)}
    wrapped = adapted()
    assert names <= {row.name for row in plan(wrapped, gamma=0.8)}

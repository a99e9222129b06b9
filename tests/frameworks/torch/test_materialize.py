"""Models on the meta device: planned for nothing, materialised when asked, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import transformers
from torch import nn
from torch.nn.utils import parametrizations

from initrate.errors import InputError
from initrate.frameworks.torch import _materialize as module_under_test
from initrate.frameworks.torch import apply, plan


class Plain(nn.Module):
    """Maps, norms, buffers, a tied head and a view of the same memory."""

    def __init__(self) -> None:
        super().__init__()
        self.wte = nn.Embedding(20, 8)
        self.attn = nn.MultiheadAttention(8, 2)
        self.norm = nn.LayerNorm(8)
        self.batch = nn.BatchNorm1d(8)
        self.conv = parametrizations.weight_norm(nn.Conv1d(8, 8, 3))
        self.lm_head = nn.Linear(8, 20, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.wte(ids))
        x = self.batch(self.conv(self.attn(x, x, x)[0].transpose(1, 2)))
        return self.lm_head(x.transpose(1, 2))


def gpt2() -> nn.Module:
    config = transformers.GPT2Config(
        n_layer=2, n_embd=16, n_head=2, vocab_size=20, n_positions=8, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config)


def llama() -> nn.Module:
    config = transformers.LlamaConfig(
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=20,
    )
    return transformers.LlamaForCausalLM(config)


MODELS: dict[str, Callable[[], nn.Module]] = {"plain": Plain, "gpt2": gpt2, "llama": llama}


def on_meta(build: Callable[[], nn.Module]) -> nn.Module:
    with torch.device("meta"):
        return build()


def tensors(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return all parameters and buffers, those that are not saved included."""
    return {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers())}


@pytest.mark.parametrize("name", MODELS)
def test_a_materialised_model_is_bit_by_bit_the_one_built_on_the_cpu(name: str) -> None:
    here, there = MODELS[name](), on_meta(MODELS[name])
    assert list(plan(here, gamma=0.6)) == list(plan(there, gamma=0.6))
    generator = torch.random.get_rng_state()
    audit = apply(there, gamma=0.6, seed=4, materialize="cpu")
    assert torch.equal(torch.random.get_rng_state(), generator)
    assert audit == apply(here, gamma=0.6, seed=4)
    found, expected = tensors(there), tensors(here)
    assert found.keys() == expected.keys()
    for key, tensor in expected.items():
        assert torch.equal(found[key], tensor), key
        assert found[key].requires_grad == tensor.requires_grad, key
    assert len(list(there.parameters())) == len(list(here.parameters()))
    ids = torch.arange(8)[None]
    outputs = [model.eval()(ids) for model in (here, there)]
    first, second = [out if isinstance(out, torch.Tensor) else out.logits for out in outputs]
    assert torch.equal(first, second)


@pytest.mark.parametrize("name", MODELS)
def test_without_being_asked_apply_raises_one_line_and_the_plan_works(name: str) -> None:
    model = on_meta(MODELS[name])
    assert plan(model, gamma=0.6).count("draw")[0] > 0
    with pytest.raises(InputError, match=r"is on the meta device.*materialize='cpu'") as caught:
        apply(model, gamma=0.6)
    assert "\n" not in str(caught.value)
    assert all(tensor.is_meta for tensor in tensors(model).values())


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.register_buffer("mask", torch.ones(4, 4))


class Hidden(Masked):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", None)
        self.frequencies = torch.ones(4)


class OwnNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.norm = RMSNorm()


class RMSNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))


class HalfReset(Masked):
    """A module whose method writes a part of what it has to."""

    def reset_parameters(self) -> None:
        self.mask[0].fill_(1.0)  # pyright: ignore[reportIndexIssue]


class Failing(Masked):
    def reset_parameters(self) -> None:
        self.mask.fill_(float(self.mask.sum()))  # pyright: ignore[reportCallIssue, reportArgumentType]


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (Masked, "'mask' has no values on the meta device, and neither _init_weights nor"),
        (Hidden, "'frequencies' is a plain attribute on the meta device"),
        (OwnNorm, r"'norm\.weight' has no values .* a reset_parameters of RMSNorm"),
        (HalfReset, "'mask' has no values"),
        (Failing, r"Failing\.reset_parameters cannot be run on the meta device"),
    ],
)
def test_what_nothing_gives_a_value_is_refused_by_name(build: type[nn.Module], text: str) -> None:
    model = on_meta(build)
    before = tensors(model)
    with pytest.raises(InputError, match=text):
        apply(model, gamma=0.5, materialize="cpu")
    after = tensors(model)
    assert all(after[key] is tensor and tensor.is_meta for key, tensor in before.items())


def test_a_refusal_comes_before_any_memory_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def allocate(*_: object) -> None:
        raise AssertionError("memory was taken")

    monkeypatch.setattr(module_under_test, "_allocate", allocate)
    with pytest.raises(InputError, match="'mask' has no values"):
        apply(on_meta(Masked), gamma=0.5, materialize="cpu")


def test_a_model_that_is_refused_while_it_is_written_goes_back_to_the_meta_device() -> None:
    from initrate.rule import Rule, Zero

    def build() -> nn.Module:
        return nn.ModuleDict({"lm_head": parametrizations.weight_norm(nn.Linear(4, 4))})

    model = on_meta(build)
    before = tensors(model)
    with pytest.raises(InputError, match="does not come out as it was set"):
        apply(model, rule=Rule(draws={"unembedding": Zero()}), materialize="cpu")
    assert all(tensors(model)[key] is tensor for key, tensor in before.items())


def test_where_memory_is_not_enough_the_model_stays_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, taken = torch.empty, []

    def empty(*size: object, **options: object) -> torch.Tensor:
        taken.append(size)
        if len(taken) > 4:
            raise RuntimeError("not enough memory: you tried to allocate 1 byte\nand more")
        return real(*size, **options)  # pyright: ignore[reportCallIssue, reportArgumentType]

    model = on_meta(gpt2)
    before = tensors(model)
    monkeypatch.setattr(torch, "empty", empty)
    with pytest.raises(InputError, match="could not be materialised on cpu: not enough memory"):
        apply(model, gamma=0.5, materialize="cpu")
    assert all(tensors(model)[key] is tensor for key, tensor in before.items())


@pytest.mark.parametrize("device", ["meta", "moon", 1.5, ""])
def test_a_device_that_is_none_is_refused(device: object) -> None:
    model = on_meta(gpt2)
    with pytest.raises(InputError, match="materialize is"):
        apply(model, gamma=0.5, materialize=device)  # pyright: ignore[reportArgumentType]
    assert all(tensor.is_meta for tensor in tensors(model).values())


def test_rescale_has_nothing_to_multiply_on_the_meta_device() -> None:
    with pytest.raises(InputError, match="on the meta device: there is nothing to rescale"):
        apply(on_meta(gpt2), gamma=0.5, mode="rescale", materialize="cpu")


def test_kept_random_values_follow_the_seed_alone() -> None:
    from initrate.rule import Rule

    models = [on_meta(lambda: nn.Sequential(nn.Linear(8, 8))) for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        torch.rand(3)
        apply(model, rule=Rule(gamma=0.5, bias="keep"), seed=seed, materialize="cpu")
    biases = [model[0].bias for model in models]  # pyright: ignore[reportIndexIssue]
    assert torch.equal(biases[0], biases[1]) and not torch.equal(biases[0], biases[2])
    assert float(biases[0].detach().abs().max()) <= 8**-0.5


def test_views_of_one_memory_share_it_afterwards() -> None:
    class Views(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            both = torch.zeros(8, 4)
            self.q_proj, self.k_proj = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
            self.q_proj.weight, self.k_proj.weight = (nn.Parameter(x) for x in both.split(4))

    model = on_meta(Views)
    apply(model, gamma=0.5, materialize="cpu")
    first, second = (p.untyped_storage().data_ptr() for p in model.parameters())
    assert first == second


def test_values_that_are_there_already_stay() -> None:
    model = nn.ModuleDict({"fc": on_meta(lambda: nn.Linear(4, 4)), "norm": nn.LayerNorm(4)})
    nn.init.constant_(model["norm"].weight, 0.5)  # pyright: ignore[reportArgumentType]
    norm = model["norm"].weight
    assert apply(model, gamma=0.5, materialize="cpu").ok
    assert model["norm"].weight is norm and bool((norm == 0.5).all())  # pyright: ignore[reportAttributeAccessIssue]

"""Groups of an optimizer: every trainable parameter in one, decayed by its role."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations
from transformers import GPT2Config, GPT2LMHeadModel, MambaConfig, MambaForCausalLM, Trainer

from initrate.errors import InputError
from initrate.frameworks.torch import Layout, optimizer_findings, param_groups


def gpt2() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    return GPT2LMHeadModel(
        GPT2Config(
            n_embd=16, n_layer=2, n_head=2, vocab_size=20, n_positions=8, bos_token_id=0,
            eos_token_id=0,
        )
    )  # fmt: skip


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * self.weight


class Odd(nn.Module):
    """A map whose layout nobody knows."""

    def __init__(self) -> None:
        super().__init__()
        self.thing = nn.Parameter(torch.randn(4, 4))
        self.shift_of_it = nn.Parameter(torch.randn(4))


def names_of(model: nn.Module, group: dict) -> set[str]:
    held = {id(p) for p in group["params"]}
    return {name for name, p in model.named_parameters() if id(p) in held}


def decayed_names(model: nn.Module, **options) -> set[str]:
    groups = param_groups(model, weight_decay=0.1, **options)
    return set().union(*(names_of(model, g) for g in groups if g["weight_decay"] > 0))


@pytest.mark.parametrize("decay", ["all", "matrices", "not_embeddings"])
def test_every_trainable_parameter_is_in_exactly_one_group(decay):
    model = gpt2()
    model.get_parameter("transformer.h.0.mlp.c_fc.weight").requires_grad_(False)
    groups = param_groups(model, weight_decay=0.1, decay=decay)
    held = [id(p) for group in groups for p in group["params"]]
    assert sorted(held) == sorted({id(p) for p in model.parameters() if p.requires_grad})
    assert sum(size for _, size in groups.counts().values()) == sum(
        p.numel() for p in model.parameters() if p.requires_grad
    )
    assert optimizer_findings(model, torch.optim.AdamW(groups)) == []
    assert all(group["weight_decay"] in (0, 0.1) and group["name"] for group in groups)


def test_policies_decay_by_role():
    model = gpt2()
    everything = {name for name, _ in model.named_parameters()}
    matrices = {name for name, p in model.named_parameters() if p.dim() > 1}
    embeddings = {"transformer.wte.weight", "transformer.wpe.weight"}
    assert decayed_names(model, decay="all") == everything
    assert decayed_names(model) == matrices
    assert decayed_names(model, decay="not_embeddings") == matrices - embeddings


def test_a_role_may_have_a_number_of_its_own():
    model = gpt2()
    groups = param_groups(model, weight_decay=0.1, by_role={"mlp": 0.05, "norm": 0.01})
    numbers = {group["name"]: group["weight_decay"] for group in groups}
    assert numbers == {"decayed": 0.1, "not decayed": 0, "mlp": 0.05, "norm": 0.01}
    mlp = next(group for group in groups if group["name"] == "mlp")
    assert names_of(model, mlp) == {
        f"transformer.h.{i}.mlp.{name}.weight" for i in (0, 1) for name in ("c_fc", "c_proj")
    }


def test_a_fused_tensor_cannot_decay_apart():
    with pytest.raises(InputError, match=r"c_attn.weight' holds query, key, value"):
        param_groups(gpt2(), weight_decay=0.1, by_role={"qk": 0.05})
    groups = param_groups(gpt2(), weight_decay=0.1, by_role={"qk": 0.05, "vo": 0.05})
    assert {g["name"] for g in groups} == {"decayed", "not decayed", "qk|vo", "vo"}


def test_the_table_says_what_decays_and_what_is_not_known():
    model = nn.Sequential(nn.Linear(4, 4), Odd())
    groups = param_groups(model, weight_decay=0.1)
    assert [row.name for row in groups.unknown] == ["1.thing", "1.shift_of_it"]
    head, rows = groups.table()
    assert head == ("name", "shape", "role", "group", "weight decay")
    assert ("1.thing", "4 × 4", "unknown", "decayed", "0.1") in rows
    assert ("1.shift_of_it", "4", "unknown", "not decayed", "0") in rows
    page = groups._repr_html_()
    assert "unknown role: 2 tensors" in page
    assert "decayed: 2 tensors, 32 values" in page


def test_a_policy_by_role_refuses_what_is_not_known_and_a_layout_teaches_it():
    model = nn.Sequential(nn.Embedding(8, 4), Odd())
    with pytest.raises(InputError, match=r"'1.thing'"):
        param_groups(model, weight_decay=0.1, decay="not_embeddings")
    layout = Layout(Odd, thing=("out", "in"), role="mlp_in")
    assert decayed_names(model, decay="not_embeddings", layouts=[layout]) == {"1.thing"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight_decay": -1.0}, "weight_decay is -1"),
        ({"weight_decay": 0.1, "decay": "everything"}, "unknown decay 'everything'"),
        ({"weight_decay": 0.1, "by_role": {"router": 0.1}}, "no trainable tensor of the model"),
        ({"weight_decay": 0.1, "by_role": {"qkv": 0.1}}, "did you mean 'qk'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        param_groups(gpt2(), **options)


def test_models_that_have_no_groups():
    model = nn.Linear(2, 2).requires_grad_(False)
    with pytest.raises(InputError, match="no parameter of the model is trainable"):
        param_groups(model, weight_decay=0.1)
    shared = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    shared[1].weight = nn.Parameter(shared.get_parameter("0.weight").data)
    with pytest.raises(InputError, match=r"'1.weight' shares its values"):
        param_groups(shared, weight_decay=0.1)

    class FlatParameter(nn.Parameter):
        pass

    flat = nn.Module()
    flat.register_parameter("flat", FlatParameter(torch.zeros(8)))
    with pytest.raises(InputError, match="many parameters in one"):
        param_groups(flat, weight_decay=0.1)


def test_tied_weights_decay_once():
    model = gpt2()
    assert model.lm_head.weight is model.transformer.wte.weight
    groups = param_groups(model, weight_decay=0.1)
    row = next(row for row in groups.rows if row.name == "transformer.wte.weight")
    assert row.aliases == ("lm_head.weight",)
    assert sum(p is model.lm_head.weight for group in groups for p in group["params"]) == 1


@pytest.mark.parametrize("normed", [parametrizations.weight_norm, nn.utils.spectral_norm])
def test_the_parameters_behind_a_computed_weight_follow_its_role(normed):
    model = nn.Sequential(normed(nn.Linear(4, 3)))
    groups = param_groups(model, weight_decay=0.1)
    assert optimizer_findings(model, torch.optim.AdamW(groups)) == []
    decayed = next(group for group in groups if group["name"] == "decayed")
    assert names_of(model, decayed) == {
        name for name, _ in model.named_parameters() if not name.endswith("bias")
    }


class Mixed(nn.Module):
    """Names that a search for the word norm misses."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(8, 4)
        self.ln1 = RMSNorm(4)
        self.final_norm = nn.LayerNorm(4)
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(4, 4)})
        self.A_log = nn.Parameter(torch.zeros(4, 2))
        self.D = nn.Parameter(torch.ones(4))


@pytest.mark.parametrize(
    ("model", "only_theirs"),
    [
        (Mixed(), {"ln1.weight", "A_log", "D"}),
        (
            MambaForCausalLM(
                MambaConfig(
                    hidden_size=16, num_hidden_layers=1, state_size=4, vocab_size=10,
                    bos_token_id=0, eos_token_id=0, pad_token_id=0,
                )
            ),
            {
                "backbone.layers.0.mixer.A_log",
                "backbone.layers.0.mixer.D",
                "backbone.norm_f.weight",
            },
        ),
        (gpt2(), set()),
    ],
)  # fmt: skip
def test_where_the_groups_differ_from_those_of_the_trainer(model, only_theirs):
    theirs = set(Trainer.get_decay_parameter_names(None, model))  # pyright: ignore[reportArgumentType]
    theirs &= {name for name, _ in model.named_parameters()}
    ours = decayed_names(model)
    assert theirs - ours == only_theirs
    assert ours <= theirs
    tables = {name for name, module in model.named_modules() if isinstance(module, nn.Embedding)}
    tables = {f"{name}.weight" for name in tables}
    assert tables <= ours
    # Without embeddings the groups differ in these as well, and in nothing else.
    assert theirs - decayed_names(model, decay="not_embeddings") == only_theirs | tables


def test_findings_of_an_optimizer():
    model = gpt2()
    weights = [p for name, p in model.named_parameters() if "ln_" not in name]
    found = optimizer_findings(model, torch.optim.AdamW(weights))
    assert [finding.code for finding in found] == ["IR108"]
    assert set(found[0].names) == {n for n, _ in model.named_parameters() if "ln_" in n}
    half = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    both = [torch.optim.SGD(half), torch.optim.AdamW(rest)]
    assert optimizer_findings(model, both) == []
    both[1].add_param_group({"params": [half[0]]})
    assert [str(finding)[:5] for finding in optimizer_findings(model, both)] == ["IR109"]
    with pytest.raises(InputError, match="optimizer is str"):
        optimizer_findings(model, "adamw")  # pyright: ignore[reportArgumentType]


def test_a_frozen_parameter_is_no_finding():
    model = gpt2()
    model.transformer.wpe.weight.requires_grad_(False)
    groups = param_groups(model, weight_decay=0.1)
    assert optimizer_findings(model, torch.optim.AdamW(groups)) == []

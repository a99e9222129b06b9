"""Rule and seed in a configuration."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from transformers import AutoConfig, GPT2Config, GPT2LMHeadModel

from initrate.errors import InputError
from initrate.frameworks.huggingface import rule_of, write_rule
from initrate.rule import Rule, Std, named_rule

RULES = [
    Rule(gamma=0.8),
    Rule(gamma=0.7, gamma_by_role={"qk": 0.5}, bias="torch", draws={"position": Std(0.01)}),
    named_rule("gpt2"),
]


def config() -> GPT2Config:
    return GPT2Config(
        n_embd=16, n_layer=1, n_head=2, vocab_size=20, n_positions=8, bos_token_id=0, eos_token_id=0
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_configuration_keeps_the_rule(rule: Rule, tmp_path: Path):
    made = config()
    assert rule_of(made) is None
    write_rule(made, rule, 7)
    made.save_pretrained(tmp_path)
    assert rule_of(AutoConfig.from_pretrained(tmp_path)) == (rule, 7)
    assert rule_of(json.loads((tmp_path / "config.json").read_text())) == (rule, 7)


def test_a_model_keeps_the_rule(tmp_path: Path):
    model = GPT2LMHeadModel(config())
    write_rule(model.config, RULES[1], 3)
    model.save_pretrained(tmp_path)
    assert rule_of(GPT2LMHeadModel.from_pretrained(tmp_path).config) == (RULES[1], 3)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ("gpt2", "expected a rule and a seed"),
        ({"rule": {}}, "expected a rule and a seed"),
        ({"rule": {"gama": 0.8}, "seed": 0}, "did you mean 'gamma'"),
        ({"rule": {"gamma": 0.8}, "seed": -1}, "seed of the configuration is -1"),
        ({"rule": 0.8, "seed": 0}, "expected a table"),
    ],
)
def test_what_is_no_rule_is_refused(found, message):
    with pytest.raises(InputError, match=message):
        rule_of({"initrate": found})
    with pytest.raises(InputError, match="seed is -1"):
        write_rule(config(), RULES[0], -1)


def test_reading_a_configuration_loads_no_framework():
    code = (
        "from initrate.frameworks.huggingface import rule_of, write_card; import sys; "
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

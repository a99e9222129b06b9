"""Rules and weight decays that a trial suggests."""

from __future__ import annotations

import math
import subprocess
import sys

import optuna
import pytest

from initrate.errors import InputError
from initrate.frameworks.optuna import suggest_rule, suggest_weight_decay
from initrate.rule import Rule, Zero


def fixed(**numbers: float) -> optuna.trial.FixedTrial:
    return optuna.trial.FixedTrial(numbers)


def test_a_rule_by_a_trial():
    rule = suggest_rule(fixed(gamma=0.7, gamma_qk=0.5, gamma_vo=0.9), by_role=["qk", "vo"])
    assert rule == Rule(gamma=0.7, gamma_by_role={"qk": 0.5, "vo": 0.9})


def test_all_else_comes_from_the_base():
    base = Rule(bias="torch", gamma_by_role={"mlp": 0.6}, draws={"unembedding": Zero()})
    rule = suggest_rule(fixed(rate=0.7, rate_qk=0.5), by_role=["qk"], base=base, name="rate")
    assert (rule.gamma, rule.bias, rule.draws) == (0.7, "torch", base.draws)
    assert rule.gamma_by_role == {"mlp": 0.6, "qk": 0.5}


def test_a_study_searches_within_the_ranges_and_its_best_can_be_made_again():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    ranges = {"gamma": (0.4, 0.8), "by_role": {"qk": (0.5, 0.6)}, "step": 0.05}
    rules: list[Rule] = []

    def objective(trial: optuna.Trial) -> float:
        rule = suggest_rule(trial, **ranges)
        rules.append(rule)
        assert rule.gamma is not None
        return abs(rule.gamma - 0.65) + suggest_weight_decay(trial, high=0.1)

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=20)
    gammas = [rule.gamma or 0 for rule in rules]
    assert min(gammas) >= 0.4
    assert max(gammas) <= 0.8
    assert all(math.isclose(g / 0.05, round(g / 0.05), abs_tol=1e-6) for g in gammas)
    assert {round(rule.gamma_by_role["qk"], 6) for rule in rules} <= {0.5, 0.55, 0.6}
    best = suggest_rule(optuna.trial.FixedTrial(study.best_params), **ranges)
    assert best == rules[study.best_trial.number]


def test_weight_decay_is_logarithmic_unless_it_may_be_zero():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    trial = study.ask()
    assert 1e-4 <= suggest_weight_decay(trial) <= 1
    assert trial.distributions["weight_decay"].log  # pyright: ignore[reportAttributeAccessIssue]
    suggest_weight_decay(trial, low=0.0, log=False, name="other")
    assert not trial.distributions["other"].log  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: suggest_rule("trial"), "trial is str"),  # pyright: ignore[reportArgumentType]
        (lambda: suggest_rule(fixed(), gamma=(0.9, 0.3)), "expected low, then high"),
        (lambda: suggest_rule(fixed(), gamma=0.5), "expected .low, high"),  # pyright: ignore[reportArgumentType]
        (lambda: suggest_rule(fixed(), gamma=(0.1, math.inf)), "expected a finite number"),
        (lambda: suggest_rule(fixed(), by_role="qk"), "expected names of roles"),
        (lambda: suggest_rule(fixed(), by_role=["qkv"]), "did you mean 'qk'"),
        (lambda: suggest_rule(fixed(), by_role=["norm"]), "always kept"),
        (lambda: suggest_rule(fixed(), step=0.0), r"step is 0\.0"),
        (lambda: suggest_rule(fixed(), base="gpt2"), "expected a Rule"),  # pyright: ignore[reportArgumentType]
        (
            lambda: suggest_rule(fixed(), by_role=["qk"], base=Rule(draws={"qk": Zero()})),
            "has a draw of its own",
        ),
        (lambda: suggest_weight_decay(fixed(), low=0.0), "expected above 0"),
        (lambda: suggest_weight_decay(fixed(), low=-1.0, log=False), "low is -1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_optuna_itself_is_not_needed():
    code = "import sys, initrate.frameworks.optuna; assert 'optuna' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

"""γ and weight decay as parameters of a search with Optuna.

Runs in seconds on a CPU: `python examples/optuna_search.py`.
"""

from __future__ import annotations

import optuna
import torch
from torch import nn

import initrate
from initrate.frameworks.optuna import suggest_rule, suggest_weight_decay

TRIALS, STEPS, WIDTH, CLASSES = 6, 30, 32, 5


def objective(trial: optuna.Trial) -> float:
    """Return the loss on unseen inputs of a small model that the trial describes."""
    made = torch.Generator().manual_seed(0)
    x = torch.randn(512, WIDTH, generator=made)
    labels = (x @ torch.randn(WIDTH, CLASSES, generator=made)).argmax(-1)
    model = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, CLASSES))
    initrate.apply(model, rule=suggest_rule(trial, gamma=(0.4, 1.0)), seed=0)
    groups = initrate.param_groups(model, weight_decay=suggest_weight_decay(trial))
    optimizer = torch.optim.AdamW(groups, lr=1e-2)
    for _ in range(STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[:256]), labels[:256]).backward()
        optimizer.step()
    with torch.no_grad():
        return nn.functional.cross_entropy(model(x[256:]), labels[256:]).item()


def main() -> optuna.Study:
    """Search, print the best trial, and return the study."""
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=TRIALS)
    # The rule of the best trial, made again from its numbers.
    best = suggest_rule(optuna.trial.FixedTrial(study.best_params), gamma=(0.4, 1.0))
    decay = study.best_params["weight_decay"]
    print(f"best of {TRIALS}: γ {best.gamma:.3f}, weight decay {decay:.3g}: {study.best_value:.3f}")
    return study


if __name__ == "__main__":
    main()

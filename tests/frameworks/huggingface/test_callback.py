"""The callback in a real run of the Trainer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from initrate.errors import InputError
from initrate.frameworks.huggingface import InitrateCallback, rule_of
from initrate.frameworks.torch import Layout, apply, param_groups
from initrate.rule import Rule, decay_window

VOCABULARY = 23


def gpt2() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(
        n_embd=32,
        n_layer=2,
        n_head=2,
        vocab_size=VOCABULARY,
        n_positions=8,
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPT2LMHeadModel(config)


class Tokens(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        ids = torch.arange(8) * (index + 1) % VOCABULARY
        return {"input_ids": ids, "labels": ids}


class Seen(TrainerCallback):
    """What a reporter gets, and the weights at the first step."""

    def __init__(self) -> None:
        self.logs: list[dict] = []
        self.first: dict[str, torch.Tensor] = {}

    def on_log(self, args, state, control, logs=None, **kwargs):
        self.logs.append(dict(logs or {}))

    def on_step_begin(self, args, state, control, model=None, **kwargs):
        if not self.first:
            assert model is not None
            self.first = {name: p.detach().clone() for name, p in model.named_parameters()}


def trained(
    folder: Path,
    callback: InitrateCallback,
    *,
    model: GPT2LMHeadModel | None = None,
    steps: int = 3,
    watch: bool = False,
    optimizer: torch.optim.Optimizer | None = None,
    resume: bool = False,
    **options,
) -> tuple[Trainer, Seen]:
    seen = Seen()
    args = TrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=4,
        logging_steps=1,
        report_to=[],
        use_cpu=True,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        **{"save_strategy": "no", "weight_decay": 0.1, "learning_rate": 1e-3, **options},
    )
    trainer = Trainer(
        model=model or gpt2(),
        args=args,
        train_dataset=Tokens(),
        callbacks=[seen, callback],
        optimizers=(optimizer, None),
    )
    if watch:
        callback.watch(trainer)
    trainer.train(resume_from_checkpoint=resume or None)
    return trainer, seen


def test_a_run_draws_logs_and_writes_down(tmp_path: Path):
    callback = InitrateCallback(gamma=0.8, seed=5, log_every=2)
    trainer, seen = trained(tmp_path, callback)
    expected = gpt2()
    apply(expected, gamma=0.8, seed=5)
    for name, values in expected.named_parameters():
        assert torch.equal(seen.first[name], values.detach()), name
    assert callback.audit is not None
    assert callback.audit.ok
    logs = [entry for entry in trainer.state.log_history if "loss" in entry]
    with_rates = [entry["step"] for entry in logs if "initrate/gamma/query" in entry]
    # The rates of the start come with the log of step 1, those of step 2 with its own.
    assert with_rates == [1, 2]
    assert logs[0]["initrate/gamma/query"] == pytest.approx(0.8, abs=0.05)
    assert 0.5 < logs[0]["initrate/rank/mlp_in"] < 2
    assert trainer.model is not None
    assert rule_of(trainer.model.config) == (Rule(gamma=0.8), 5)
    card = (tmp_path / "README.md").read_text()
    assert "γ = 0.8" in card
    assert f"| query | {callback.audit.gamma_by_role()['query']:.3f} |" in card


def test_a_watched_trainer_tells_its_reporters_and_keeps_its_own_log(tmp_path: Path):
    callback = InitrateCallback(gamma=0.8, log_every=2, card=False)
    _, seen = trained(tmp_path, callback, watch=True)
    rates = [entry for entry in seen.logs if "initrate/gamma/query" in entry]
    losses = [entry for entry in seen.logs if "loss" in entry]
    assert len(rates) == 2
    assert len(losses) == 3
    assert not any("initrate/gamma/query" in entry for entry in losses)
    assert not (tmp_path / "README.md").exists()


def test_ranks_can_be_left_out(tmp_path: Path):
    trainer, _ = trained(tmp_path, InitrateCallback(gamma=0.8, ranks=False), steps=1)
    keys = {key for entry in trainer.state.log_history for key in entry}
    assert any(key.startswith("initrate/gamma/") for key in keys)
    assert not any(key.startswith("initrate/rank/") for key in keys)


@pytest.mark.parametrize("mode", ["coupled", "independent"])
def test_a_decay_schedule_acts_and_is_logged(mode, tmp_path: Path):
    model = gpt2()
    groups = param_groups(model, weight_decay=0.1)
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    callback = InitrateCallback(
        gamma=0.8, decay_schedule=decay_window(1, 2), decay_mode=mode, log_every=1
    )
    trainer, _ = trained(tmp_path, callback, model=model, optimizer=optimizer, weight_decay=0.0)
    logs = [e for e in trainer.state.log_history if "initrate/weight_decay/decayed" in e]
    assert [e["initrate/weight_decay/decayed"] for e in logs] == pytest.approx([0.1, 0, 0])
    # The learning rate falls linearly: at step 1 of 3 it is two thirds.
    share = 0.1 if mode == "independent" else 0.1 * 1e-3 * 2 / 3
    assert [e["initrate/decay_sum/decayed"] for e in logs] == pytest.approx([0, share, share])
    assert logs[-1]["initrate/decay_sum/not decayed"] == 0


def test_a_trained_model_is_refused_unless_forced(tmp_path: Path):
    model = gpt2()
    with torch.no_grad():
        model.transformer.ln_f.weight[0] = 2.0
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    with pytest.raises(InputError, match="looks trained"):
        trained(tmp_path, InitrateCallback(gamma=0.8, decay_schedule=()), model=model)
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    assert rule_of(model.config) is None
    trained(tmp_path, InitrateCallback(gamma=0.8, force=True), model=model, steps=1)
    assert rule_of(model.config) is not None


def test_a_resumed_training_goes_on_and_a_foreign_one_is_refused(tmp_path: Path):
    options = {"save_strategy": "steps", "save_steps": 2}

    def callback(gamma: float, **more) -> InitrateCallback:
        return InitrateCallback(
            gamma=gamma, seed=1, decay_schedule=(), decay_mode="independent", **more
        )

    cut, _ = trained(tmp_path / "cut", callback(0.8), steps=2, **options)
    again = callback(0.8, force=True)
    _, seen = trained(tmp_path / "cut", again, steps=4, resume=True, **options)
    assert again.audit is None
    assert again.decay is not None
    assert again.decay.step == 4
    # Not even force draws anew what this very rule has started.
    assert cut.model is not None
    for name, values in cut.model.named_parameters():
        assert torch.equal(seen.first[name], values.detach()), name
    with pytest.raises(InputError, match="resumed at step 4, and was not started with this rule"):
        trained(tmp_path / "cut", callback(0.7), steps=6, resume=True, **options)
    forced = callback(0.7, force=True)
    trained(tmp_path / "cut", forced, steps=6, resume=True, **options)
    assert forced.audit is not None


def test_what_is_not_known_is_refused_kept_or_taught(tmp_path: Path):
    class Odd(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.thing = torch.nn.Parameter(torch.full((4, 16), 3.0))

    def model() -> GPT2LMHeadModel:
        made = gpt2()
        made.odd = Odd()
        return made

    with pytest.raises(InputError, match=r"'odd\.thing'"):
        trained(tmp_path, InitrateCallback(gamma=0.8), model=model())
    kept = InitrateCallback(gamma=0.8, unknown="keep")
    _, seen = trained(tmp_path, kept, model=model(), steps=1)
    assert (seen.first["odd.thing"] == 3).all()
    layout = Layout(Odd, thing=("out", "in"), role="mlp_in")
    taught = InitrateCallback(gamma=0.8, layouts=[layout])
    _, seen = trained(tmp_path, taught, model=model(), steps=1)
    assert seen.first["odd.thing"].abs().max() < 1


def test_deepspeed_is_refused(tmp_path: Path):
    args = SimpleNamespace(deepspeed="zero.json")
    with pytest.raises(InputError, match="before the Trainer is made"):
        InitrateCallback(gamma=0.8).on_train_begin(
            args,  # pyright: ignore[reportArgumentType]
            TrainerState(),
            TrainerControl(),
            model=gpt2(),
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "neither gamma nor rule"),
        ({"gamma": 0.8, "rule": Rule()}, "give one of the two"),
        ({"gamma": 0.8, "seed": -1}, "seed is -1"),
        ({"gamma": 0.8, "log_every": 0}, "log_every is 0"),
        ({"gamma": 0.8, "decay_mode": "free"}, "unknown decay_mode 'free'"),
        ({"gamma": 0.8, "decay_schedule": [1]}, "expected a tuple of"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        InitrateCallback(**options)

"""A callback of the Trainer: draws the weights before the first step, and logs what they become.

What it has drawn stands in the Trainer's state, so that a resumed training is told from a new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import torch
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from initrate.errors import InputError
from initrate.errors import unknown as unknown_word
from initrate.frameworks._layout import Layout
from initrate.frameworks.huggingface._card import write_card
from initrate.frameworks.huggingface._config import KEY, record, write_rule
from initrate.frameworks.torch._apply import apply
from initrate.frameworks.torch._decay import DecayHandle, independent_decay, scheduled_decay
from initrate.frameworks.torch._measure import measure_tensors
from initrate.frameworks.torch._plan import plan_tensors
from initrate.frameworks.torch._rank import rank_by_role
from initrate.rule import Audit, AuditRow, DecaySchedule, Rule, Unknown, check_decay_pairs
from initrate.rule._checks import whole_number
from initrate.rule._choice import needed_rule

DecayMode = Literal["coupled", "independent"]


class InitrateCallback(TrainerCallback):
    """Applies a rule to the Trainer's model before step 0, and logs rates, decay and ranks.

    The log has `initrate/gamma/ROLE`, the median rate that the weights of a role imply;
    `initrate/rank/ROLE`, the median stable rank beside that of a random matrix; and, where a
    decay schedule is given, `initrate/weight_decay/GROUP` and `initrate/decay_sum/GROUP`. They
    come with the Trainer's next log; after `watch(trainer)` they are logged by themselves, which
    reporters such as a tracker need.

    A model that looks trained is refused, and so is a training that is resumed and was not
    started with the same rule and seed, unless `force` is given; a resumed training that was is
    left as it is. Rule and seed go into `model.config.initrate` and the model card.

    >>> callback = InitrateCallback(gamma=0.8, seed=0, decay_schedule=((1000, 0.0),))
    >>> callback.rule.gamma
    0.8
    """

    def __init__(
        self,
        *,
        gamma: float | None = None,
        rule: Rule | str | None = None,
        seed: int = 0,
        unknown: Unknown = "refuse",
        layouts: Sequence[Layout] = (),
        force: bool = False,
        decay_schedule: DecaySchedule | None = None,
        decay_mode: DecayMode = "coupled",
        log_every: int = 100,
        ranks: bool = True,
        card: bool = True,
    ) -> None:
        chosen = needed_rule(gamma, rule)
        if decay_mode not in get_args(DecayMode):
            raise unknown_word("decay_mode", decay_mode, get_args(DecayMode))
        if decay_schedule is not None and not callable(decay_schedule):
            check_decay_pairs("decay_schedule", decay_schedule)
        self.rule = chosen
        self.seed = whole_number("seed", seed, least=0)
        self.log_every = whole_number("log_every", log_every, least=1)
        self.audit: Audit | None = None
        """Of the weights as they were drawn; None before, and in a resumed training."""
        self.decay: DecayHandle | None = None
        self._unknown: Unknown = unknown
        self._layouts = tuple(layouts)
        self._force = force
        self._decay_schedule = decay_schedule
        self._decay_mode = decay_mode
        self._ranks = ranks
        self._card = card
        self._trainer: Trainer | None = None
        self._pending: dict[str, float] = {}

    def watch(self, trainer: Trainer) -> InitrateCallback:
        """Log through this trainer, at the very step; return the callback itself."""
        self._trainer = trainer
        return self

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Draw the weights, attach the decay schedule, write rule and seed into the config."""
        model, optimizer = kwargs["model"], kwargs.get("optimizer")
        if getattr(args, "deepspeed", None):
            raise InputError(
                "DeepSpeed keeps copies of the weights that a draw at this point would not reach: "
                "call initrate.apply(model, ...) before the Trainer is made"
            )
        draws = self._draws(state)
        handle = self._attach(optimizer)
        try:
            if draws:
                self.audit = apply(
                    model,
                    rule=self.rule,
                    seed=self.seed,
                    unknown=self._unknown,
                    layouts=self._layouts,
                    force=self._force,
                )
        except BaseException:
            if handle is not None:
                handle.remove()
            raise
        self.decay = handle
        if getattr(model, "config", None) is not None:
            write_rule(model.config, self.rule, self.seed)
        # The Trainer saves this with its state, and a resumed training finds it there.
        state.stateful_callbacks[KEY] = {"args": {}, "attributes": record(self.rule, self.seed)}  # pyright: ignore[reportArgumentType, reportCallIssue, reportOptionalSubscript]
        self._log(model, control)

    def _draws(self, state: TrainerState) -> bool:
        """Return whether the weights are to be drawn; refuse a foreign training."""
        if state.global_step == 0:
            return True
        saved = state.stateful_callbacks if isinstance(state.stateful_callbacks, Mapping) else {}
        found = saved.get(KEY, {})
        if isinstance(found, Mapping) and found.get("attributes") == record(self.rule, self.seed):
            return False
        if self._force:
            return True
        raise InputError(
            f"the training is resumed at step {state.global_step}, and was not started with this "
            "rule and seed: take the callback out, or give force=True to draw all weights anew"
        )

    def _attach(self, optimizer: torch.optim.Optimizer | None) -> DecayHandle | None:
        if self.decay is not None:
            self.decay.remove()  # Of an earlier call of train().
            self.decay = None
        if self._decay_schedule is None:
            return None
        if optimizer is None:
            raise InputError("the Trainer has no optimizer yet, and decay_schedule needs one")
        attach = independent_decay if self._decay_mode == "independent" else scheduled_decay
        return attach(optimizer, schedule=self._decay_schedule)

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Log every `log_every` steps."""
        if state.global_step % self.log_every == 0:
            self._log(kwargs["model"], control)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Put what was measured into the Trainer's log."""
        if not self._pending:
            return
        logs = kwargs.get("logs")
        if isinstance(logs, dict):
            logs.update(self._pending)
        if state.log_history and state.log_history[-1].get("step") == state.global_step:
            state.log_history[-1].update(self._pending)
        self._pending = {}

    def on_train_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Write the section of the model card."""
        if self._card and state.is_world_process_zero and args.output_dir:
            write_card(args.output_dir, self.rule, self.seed, self.audit)

    def measured(self, model: torch.nn.Module) -> dict[str, float]:
        """Return what is logged of a model now."""
        plan, tensors = plan_tensors(model, self.rule, unknown="keep", layouts=self._layouts)
        moments = measure_tensors(tensors)
        rows = tuple(AuditRow(row, moments[row.name]) for row in plan if row.name in moments)
        rates = Audit(self.rule, rows, ()).gamma_by_role()
        found = {f"initrate/gamma/{role}": rate for role, rate in rates.items()}
        if self._ranks:
            ranks = rank_by_role(model, layouts=self._layouts)
            found |= {f"initrate/rank/{role}": rank for role, rank in ranks.items()}
        if self.decay is not None:
            numbers, sums = self.decay.weight_decay(), self.decay.sums()
            found |= {f"initrate/weight_decay/{name}": number for name, number in numbers.items()}
            found |= {f"initrate/decay_sum/{name}": total for name, total in sums.items()}
        return found

    def _log(self, model: torch.nn.Module, control: TrainerControl) -> None:
        found = self.measured(model)
        if self._trainer is None:
            self._pending.update(found)
            return
        # A log of the Trainer clears the wish for one, which is for the loss of this step.
        wished = control.should_log
        self._trainer.log(found)
        control.should_log = wished
        self._trainer.control.should_log = wished

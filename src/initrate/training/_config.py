"""How one model is trained: optimizer, schedule, decay, loss."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Literal, get_args, get_type_hints

from initrate.errors import InputError, unknown


@dataclass(frozen=True, slots=True)
class Training:
    """The recipe of one training run; the defaults are the laptop recipe.

    The learning rate goes linearly from `lr_start` to `lr` in `warmup_steps`, then along
    `schedule` to `lr_final` (or, where that is None, to `lr_final_fraction` of `lr`).

    >>> Training(lr=3e-4).weight_decay
    0.01
    """

    steps: int = 1000
    batch: int = 256
    optimizer: Literal["adamw", "sgd"] = "adamw"
    lr: float = 1e-3
    lr_start: float = 0.0
    lr_final: float | None = None
    lr_final_fraction: float = 0.05
    warmup_steps: int = 200
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    momentum: float = 0.9
    """Of SGD alone."""
    weight_decay: float = 0.01
    decay: Literal["all", "matrices", "not_embeddings"] = "all"
    """What decays: everything (the papers' code), matrices, or matrices but no embeddings."""
    decay_mode: Literal["coupled", "independent"] = "coupled"
    """Coupled: a step takes lr * weight_decay of a weight; independent: weight_decay itself."""
    decay_schedule: tuple[tuple[int, float], ...] = ()
    """(step, factor) pairs: from each step on, weight_decay times factor; () is constant."""
    clip_norm: float | None = 1.0
    loss: Literal["last", "all", "chosen"] = "last"
    loss_positions: tuple[int, ...] = ()
    """The positions of `loss="chosen"`; position t is asked for token t + 1, the last for the
    target."""
    log_every: int = 50

    def __post_init__(self) -> None:
        for name, known in _choices().items():
            if getattr(self, name) not in known:
                raise unknown(f"training {name}", getattr(self, name), known)
        for name, least in [("steps", 1), ("batch", 1), ("warmup_steps", 0), ("log_every", 1)]:
            found = getattr(self, name)
            if not isinstance(found, int) or isinstance(found, bool) or found < least:
                raise InputError(
                    f"training {name} is {found!r}: expected a whole number of at least {least}"
                )
        for name, low, high in _RANGES:
            found = getattr(self, name)
            if found is None and name in ("lr_final", "clip_norm"):
                continue
            if (
                isinstance(found, bool)
                or not isinstance(found, int | float)
                or not math.isfinite(found)
                or not low <= found < high
            ):
                upper = "" if math.isinf(high) else f" and below {high}"
                raise InputError(
                    f"training {name} is {found!r}: expected a finite number of at least "
                    f"{low}{upper}"
                )
        if self.clip_norm == 0:
            raise InputError("training clip_norm is 0: expected a positive number, or none")
        if self.eps == 0:
            raise InputError("training eps is 0: expected a positive number")
        steps = [step for step, _ in self.decay_schedule]
        if steps != sorted(set(steps)) or any(step < 0 for step in steps):
            raise InputError(
                f"training decay_schedule has steps {steps}: expected rising steps from 0 on"
            )
        if any(not math.isfinite(factor) or factor < 0 for _, factor in self.decay_schedule):
            raise InputError("training decay_schedule has a factor that is negative or not finite")
        if (self.loss == "chosen") != bool(self.loss_positions):
            raise InputError(
                f"training loss is {self.loss!r} with loss_positions {self.loss_positions}: "
                "give positions with loss 'chosen', and only there"
            )


@functools.cache
def _choices() -> dict[str, tuple[str, ...]]:
    """Field -> the words it may have; looked up once, for a study makes thousands of recipes."""
    args = {name: get_args(hint) for name, hint in get_type_hints(Training).items()}
    return {name: words for name, words in args.items() if words and isinstance(words[0], str)}


_INFINITY = math.inf
_LARGEST_LR, _LARGEST_DECAY = 1e30, 1e7
"""Beyond any use; their product is still a float32."""
_RANGES = (
    ("lr", 0.0, _LARGEST_LR),
    ("lr_start", 0.0, _LARGEST_LR),
    ("lr_final", 0.0, _LARGEST_LR),
    ("lr_final_fraction", 0.0, _LARGEST_LR),
    ("beta1", 0.0, 1.0),
    ("beta2", 0.0, 1.0),
    ("eps", 0.0, _INFINITY),
    ("momentum", 0.0, 1.0),
    ("weight_decay", 0.0, _LARGEST_DECAY),
    ("clip_norm", 0.0, _INFINITY),
)

LANE_FIELDS = frozenset(
    {
        "lr",
        "lr_start",
        "lr_final",
        "lr_final_fraction",
        "warmup_steps",
        "beta1",
        "beta2",
        "eps",
        "momentum",
        "weight_decay",
        "decay_schedule",
        "clip_norm",
    }
)
"""Fields in which the models of one bucket may differ; all others are one for the bucket."""


def window(first_step: int, last_step: int) -> tuple[tuple[int, float], ...]:
    """Return the decay schedule that decays from `first_step` up to, not at, `last_step` only.

    >>> window(100, 200)
    ((0, 0.0), (100, 1.0), (200, 0.0))
    """
    if not 0 <= first_step < last_step:
        raise InputError(
            f"decay window [{first_step}, {last_step}]: expected two rising steps from 0 on"
        )
    head = ((0, 0.0),) if first_step else ()
    return (*head, (first_step, 1.0), (last_step, 0.0))

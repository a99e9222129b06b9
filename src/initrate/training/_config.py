"""How one model is trained: optimizer, schedule, decay, loss."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Literal, get_args, get_type_hints

from initrate.errors import InputError, unknown, whole_number
from initrate.rule import LARGEST_DECAY, MOST_STEPS, DecayPairs, DecayPolicy, check_decay_pairs


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
    decay: DecayPolicy = "all"
    """What decays: everything (the papers' code), matrices, or matrices but no embeddings."""
    decay_mode: Literal["coupled", "independent"] = "coupled"
    """Coupled: a step takes lr * weight_decay of a weight; independent: weight_decay itself."""
    decay_schedule: DecayPairs = ()
    """(step, factor) pairs: from each step on, weight_decay times factor; () is constant."""
    clip_norm: float | None = 1.0
    loss: Literal["last", "all", "chosen"] = "last"
    loss_positions: tuple[int, ...] = ()
    """The positions of `loss="chosen"`; position t is asked for token t + 1, the last for the
    target."""
    log_every: int = 50

    def __post_init__(self) -> None:
        for name, known in _choices().items():
            found = getattr(self, name)
            if not isinstance(found, str) or found not in known:
                raise unknown(f"training {name}", found, known)
        for name, least, most in _COUNTS:
            whole_number(f"training {name}", getattr(self, name), least=least, most=most)
        for name, low, high in _RANGES:
            found = getattr(self, name)
            if found is not None or name not in ("lr_final", "clip_norm"):
                _number(f"training {name}", found, low, high)
        if self.clip_norm == 0:
            raise InputError("training clip_norm is 0: expected a positive number, or none")
        if self.eps == 0:
            raise InputError("training eps is 0: expected a positive number")
        check_decay_pairs("training decay_schedule", self.decay_schedule)
        if (self.loss == "chosen") != bool(self.loss_positions):
            raise InputError(
                f"training loss is {self.loss!r} with loss_positions {self.loss_positions!r}: "
                "give positions with loss 'chosen', and only there"
            )
        for position in self.loss_positions:
            whole_number("a position of loss_positions", position, least=0, most=MOST_STEPS)
        if len(set(self.loss_positions)) < len(self.loss_positions):
            raise InputError(f"loss_positions {self.loss_positions} name a position twice")


def _number(name: str, found: object, low: float, high: float) -> None:
    if not isinstance(found, int | float) or isinstance(found, bool):
        shown = repr(found)
    # Compared before it is made a float, which a whole number of 400 digits cannot be.
    elif low <= found < high:
        return
    else:
        shown = (
            str(found) if isinstance(found, float) or abs(found) < 10**20 else "beyond all bounds"
        )
    upper = "" if math.isinf(high) else f" and below {high}"
    raise InputError(f"{name} is {shown}: expected a finite number of at least {low}{upper}")


@functools.cache
def _choices() -> dict[str, tuple[str, ...]]:
    """Field -> the words it may have; looked up once, for a study makes thousands of recipes."""
    args = {name: get_args(hint) for name, hint in get_type_hints(Training).items()}
    return {name: words for name, words in args.items() if words and isinstance(words[0], str)}


_INFINITY = math.inf
_COUNTS = (
    ("steps", 1, MOST_STEPS),
    ("batch", 1, 10**7),
    ("warmup_steps", 0, MOST_STEPS),
    ("log_every", 1, MOST_STEPS),
)
_LARGEST_LR = 1e30
"""Beyond any use; its product with LARGEST_DECAY is still a float32."""
_RANGES = (
    ("lr", 0.0, _LARGEST_LR),
    ("lr_start", 0.0, _LARGEST_LR),
    ("lr_final", 0.0, _LARGEST_LR),
    ("lr_final_fraction", 0.0, _LARGEST_LR),
    ("beta1", 0.0, 1.0),
    ("beta2", 0.0, 1.0),
    ("eps", 0.0, _INFINITY),
    ("momentum", 0.0, 1.0),
    ("weight_decay", 0.0, LARGEST_DECAY),
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

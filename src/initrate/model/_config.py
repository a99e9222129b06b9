"""The shape of a decoder: sizes and switches, no weights."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from typing import Literal, get_args, get_type_hints

from initrate.errors import InputError, unknown, whole_number


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The shape of a causal decoder; the defaults are the laptop shape.

    Sizes are counts of units; `d_k` and `d_v` are per head. With `norm_position="post"` a block is
    `x = norm(x + attention(x)); x = norm(x + mlp(x))` and there is no final norm
    (arXiv 2405.05409, eq. 3-6); with `"pre"` it is `x = x + attention(norm(x))`,
    `x = x + mlp(norm(x))` and a final norm follows the last block.

    >>> ModelConfig(n_layers=3).n_layers
    3
    """

    n_layers: int = 2
    d_model: int = 64
    n_heads: int = 1
    d_k: int = 32
    d_v: int = 32
    d_ff: int = 128
    norm_position: Literal["pre", "post"] = "pre"
    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    norm_eps: float = 1e-5
    activation: Literal["relu", "gelu", "gelu_tanh", "swiglu"] = "gelu"
    positions: Literal["learned", "rotary", "none"] = "learned"
    max_positions: int = 20
    tied: bool = False
    biases: Literal["none", "unembedding", "blocks", "all"] = "unembedding"
    """Which linear maps have a bias: none, the unembedding alone, all but it, or all."""

    def __post_init__(self) -> None:
        hints = _hints()
        for field in fields(self):
            found = getattr(self, field.name)
            if hints[field.name] is int:
                whole_number(f"model {field.name}", found, least=1, most=_MOST[field.name])
            known = get_args(hints[field.name])
            if known and (not isinstance(found, str) or found not in known):
                raise unknown(f"model {field.name}", found, known)
        if not isinstance(self.tied, bool):
            raise InputError(f"model tied is {self.tied!r}: expected true or false")
        if isinstance(self.norm_eps, bool) or not isinstance(self.norm_eps, int | float):
            raise InputError(f"model norm_eps is {self.norm_eps!r}: expected a number")
        if not 0 < self.norm_eps < 1:
            raise InputError(f"model norm_eps is {self.norm_eps!r}: expected between 0 and 1")
        if self.positions == "rotary" and self.d_k % 2:
            raise InputError(f"model d_k is {self.d_k}: rotary positions need an even d_k")


# Far beyond any use: a slip of the finger is told at once, not when memory runs out.
_MOST = {
    "n_layers": 10_000,
    "d_model": 1_000_000,
    "n_heads": 10_000,
    "d_k": 1_000_000,
    "d_v": 1_000_000,
    "d_ff": 10_000_000,
    "max_positions": 10_000_000,
}


@functools.cache
def _hints() -> dict[str, object]:
    return get_type_hints(ModelConfig)


SHAPES: dict[str, ModelConfig] = {
    "laptop": ModelConfig(),
    "small": ModelConfig(d_model=32, d_k=16, d_v=16, d_ff=64, activation="relu"),
    # arXiv 2405.05409, Appendix A; biases as in the authors' printed model.
    "paper-2405.05409": ModelConfig(
        d_model=400, d_k=200, d_v=200, d_ff=1200, norm_position="post", activation="relu"
    ),
    # The pre-norm model of arXiv 2501.08537; its linear maps carry biases.
    "paper-2501.08537": ModelConfig(
        n_layers=10, d_model=640, n_heads=10, d_k=64, d_v=64, d_ff=1280, biases="all"
    ),
    "gpt2": ModelConfig(
        n_layers=12,
        d_model=768,
        n_heads=12,
        d_k=64,
        d_v=64,
        d_ff=3072,
        activation="gelu_tanh",
        max_positions=1024,
        tied=True,
        biases="blocks",
    ),
}


def shape(name: str, **changes: object) -> ModelConfig:
    """Return the named shape, with any field changed.

    >>> shape("laptop", n_layers=4).n_layers
    4
    """
    if name not in SHAPES:
        raise unknown("shape", name, SHAPES)
    names = [field.name for field in fields(ModelConfig)]
    for key in changes:
        if key not in names:
            raise unknown("model field", key, names)
    return replace(SHAPES[name], **changes)  # pyright: ignore[reportArgumentType]

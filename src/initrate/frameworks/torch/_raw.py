"""Parameters that a module holds by itself, without a map of torch around them.

A family's data file wins. Else the parameter's own name must say what it is: a class token, a
position, a scalar gate, and its shape must not speak against it. Nothing is concluded from a
shape alone; what no name tells is refused.
"""

from __future__ import annotations

import re

from torch import nn

from initrate.frameworks._layout import Axes, Part
from initrate.frameworks.torch._families import parts_at
from initrate.frameworks.torch._modules import BIAS, structured

_STATE_SPACE = re.compile(r"^(A_logs?|Ds|dt_bias|dt_proj_bias)$")
_KEPT: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"(correction_bias|expert_bias|router_bias|moe_statics)$", "a bias of a router"),
        (r"^sinks?$|attention_sink", "an attention sink"),
        (r"^logit_(scale|bias)|_logit_(scale|bias)$|temperature|softmax_scale", "a temperature"),
        (r"(^|_)(alpha|beta)(_\w+)?$", "a parameter of an activation or a gate"),
        (
            r"layer_?scale|^lambda|^gamma(_\w+)?$|_gamma$|_scale$|^scale(s|_\w+)?$|^scaling$"
            r"|_scaling_factor$",
            "a layer scale",
        ),
        (r"(^|_)gate(_\w+)?$|gating|_mix$|^mix|^time_mix", "a gate"),
    )
)
_TOKEN = re.compile(
    r"(^|_)(tokens?|class_embedding|cls_emb\w*|mask_emb\w*|newline|latents?|queries|query_embed\w*"
    r"|latent_query|level_embed)$"
    r"|^(image_(begin|end|sep|newline)|bos_latent|padding_emb\w*|null_emb\w*|masked_spec_embed)$",
    re.IGNORECASE,
)
_POSITION = re.compile(
    r"pos(itional|ition)?_?emb|pos_?embed|position_bias_table|relative_attention_bias|^rel_pos"
    r"|relative_position|position_embeddings?$|positional_encoding",
    re.IGNORECASE,
)
_BIAS = re.compile(r"(^|_)bias(es)?$|^(pos_)?bias_[uv]$")
_EXPERTS = {
    "gate_up_proj": ("mlp_gate", "mlp_in"),
    "up_proj": ("mlp_in",),
    "down_proj": ("mlp_out",),
}


def raw_axes(owner: nn.Module, name: str, shape: tuple[int, ...]) -> Axes | None:
    """Return what the parameter's name says of it, or None."""
    wide = sum(side > 1 for side in shape)
    if _STATE_SPACE.search(name) or (name == "D" and hasattr(owner, "A_log")):
        return structured("a state-space parameter")
    if wide <= 1:
        for pattern, reason in _KEPT:
            if pattern.search(name):
                return structured(reason)
    # The width stands last in a table of rows; of an image-like one no name tells where.
    if 0 < len(shape) <= 3 and shape[-1] > 1:
        table = (*("row",) * (len(shape) - 1), "width")
        if _POSITION.search(name):
            return Axes(table, parts=(Part(("position",)),))
        if _TOKEN.search(name):
            return Axes(table, parts=(Part(("token_embedding",)),))
    experts = _experts(owner, name, shape)
    if experts is not None:
        return experts
    if _BIAS.search(name) and (wide <= 1 or "bias_" in name):
        return BIAS
    return None


def _experts(owner: nn.Module, name: str, shape: tuple[int, ...]) -> Axes | None:
    """Return the axes of stacked experts, where their module says which way they lie."""
    transposed = getattr(owner, "is_transposed", None)
    if not isinstance(transposed, bool):
        return None
    if name.endswith("_bias") and name.removesuffix("_bias") in _EXPERTS and len(shape) == 2:
        return BIAS
    roles = _EXPERTS.get(name)
    if roles is None or len(shape) != 3:
        return None
    words = ("copy", "in", "out") if transposed else ("copy", "out", "in")
    concatenated = getattr(owner, "is_concatenated", None)
    if len(roles) == 1 or not isinstance(concatenated, bool):
        return Axes(words, parts=(Part(roles),))
    # The gate's half before the up map's, or the two taking turns.
    axis = words.index("out")
    length = shape[axis] // 2 if concatenated else 1
    parts = parts_at(roles, [length, length], axis, shape, interleaved=not concatenated)
    return Axes(words, parts=parts)

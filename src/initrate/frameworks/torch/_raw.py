"""Parameters that a module holds by itself, without a map of torch around them.

A family's data file wins. Else the parameter's own name must say what it is: a class token, a
position, a scalar gate. Nothing is concluded from a shape; what no name tells is refused.
"""

from __future__ import annotations

import re

from torch import nn

from initrate.frameworks.torch._layout import Axes, Part
from initrate.frameworks.torch._modules import BIAS, structured

_KEPT: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"^(A|D|A_log|dt_bias|dt_proj_bias|A_logs|Ds)$", "a state-space parameter"),
        (r"(correction_bias|expert_bias|router_bias|moe_statics)$", "a bias of a router"),
        (r"^sinks?$|attention_sink", "an attention sink"),
        (r"^logit_(scale|bias)$|temperature|softmax_scale", "a temperature"),
        (r"^(alpha|beta)(_\w+)?$", "a parameter of an activation or a gate"),
        (r"layer_?scale|^lambda|^gamma(_\w+)?$|_gamma$|_scale$|^scale(s|_\w+)?$", "a layer scale"),
        (r"(^|_)gate(_\w+)?$|gating|_mix$|^mix", "a gate"),
    )
)
_TOKEN = re.compile(
    r"(^|_)(tokens?|class_embedding|cls_emb\w*|mask_emb\w*|newline|latents?|queries|query_embed\w*)$"
    r"|^(image_(begin|end|sep|newline)|bos_latent|padding_emb\w*|null_emb\w*)$",
    re.IGNORECASE,
)
_POSITION = re.compile(
    r"pos(itional|ition)?_?emb|pos_?embed|position_bias_table|relative_attention_bias|^rel_pos"
    r"|relative_position|position_embeddings?$|positional_encoding",
    re.IGNORECASE,
)
_BIAS = re.compile(r"(^|_)biases?$|^bias_")


def raw_axes(owner: nn.Module, name: str, dimensions: int) -> Axes | None:
    """Return what the parameter's name says of it, or None."""
    for pattern, reason in _KEPT:
        if pattern.search(name) and (dimensions <= 1 or reason != "a gate"):
            return structured(reason)
    table = (*("row",) * (dimensions - 1), "width")
    if _POSITION.search(name) and dimensions:
        return Axes(table, parts=(Part(("position",)),))
    if _TOKEN.search(name) and dimensions:
        return Axes(table, parts=(Part(("token_embedding",)),))
    if _BIAS.search(name):
        return BIAS
    return _experts(owner, name, dimensions)


def _experts(owner: nn.Module, name: str, dimensions: int) -> Axes | None:
    """Return the axes of stacked experts, where their module says which way they lie."""
    transposed = getattr(owner, "is_transposed", None)
    roles = {
        "gate_up_proj": ("mlp_gate", "mlp_in"),
        "gate_proj": ("mlp_gate",),
        "up_proj": ("mlp_in",),
        "down_proj": ("mlp_out",),
    }.get(name)
    if not isinstance(transposed, bool) or roles is None or dimensions != 3:
        return None
    words = ("copy", "in", "out") if transposed else ("copy", "out", "in")
    return Axes(words, parts=(Part(roles),))

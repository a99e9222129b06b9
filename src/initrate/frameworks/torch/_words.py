"""Roles of dense maps from where they stand: the words that models use for their parts.

A word counts together with its owners: `c_proj` below an attention is its output, below an MLP
its second map. What no word tells stays open, and a rule that treats the open roles apart
refuses the tensor.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from initrate.rule import DENSE_ROLES

_ATTENTION = re.compile(
    r"attn|attention|multihead|^mha$|^att$|^self_?att|cross_?att|^attend", re.IGNORECASE
)
_MLP = re.compile(
    r"mlp|ffn|feed_?forward|dense_?relu_?dense|expert|^ff$|^intermediate$|^moe|swiglu|^fc_?layer",
    re.IGNORECASE,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


QUERY = _words(
    """
    q wq q_proj query q_lin to_q linear_q query_proj w_q q_linear q_a_proj q_b_proj lin_q
    query_layer query_projection q_proj_weight
    """
)
KEY = _words(
    """
    k wk k_proj key k_lin to_k linear_k key_proj w_k k_linear lin_k key_layer key_projection
    k_proj_weight
    """
)
VALUE = _words(
    """
    v wv v_proj value v_lin to_v linear_v value_proj w_v v_linear lin_v value_layer
    value_projection v_proj_weight
    """
)
KEY_VALUE = _words(
    """
    kv kv_proj to_kv key_value kv_a_proj_with_mqa kv_b_proj kv_a_proj
    """
)
FUSED = _words(
    """
    qkv qkv_proj query_key_value wqkv to_qkv c_attn in_proj qkv_linear in_proj_weight w_qkv
    """
)
OUTPUT = _words(
    """
    o wo o_proj out_proj c_proj dense to_out out_lin proj w_o linear_out out output
    output_proj o_lin projection dense_output proj_out out_projection fc_out
    """
)
MLP_IN = _words(
    """
    fc1 up_proj c_fc wi lin1 linear1 w1 dense_h_to_4h fc_in up dense_in wi_1 linear_1 lin_1
    intermediate_dense in_proj fc_1 w_1
    """
)
MLP_GATE = _words(
    """
    gate_proj wi_0 w3_gate gate
    """
)
MLP_OUT = _words(
    """
    fc2 down_proj c_proj wo lin2 linear2 w2 dense_4h_to_h down fc_out dense_out linear_2 lin_2
    output_dense out_proj fc_2 w_2 proj
    """
)
MLP_FUSED = _words(
    """
    gate_up_proj wi_fused w12 input_linear gate_and_up_proj
    """
)
UNEMBEDDING = _words(
    """
    lm_head embed_out unembed unembedding output_embeddings
    """
)
ROUTER = _words(
    """
    router wg gate
    """
)
OTHER = _words(
    """
    classifier score pooler qa_outputs seq_relationship text_projection visual_projection
    regression_head summary multi_modal_projector connector classification_head pre_classifier
    logits_proj start_logits end_logits class_predictor bbox_predictor class_embed bbox_embed
    cls_classifier distillation_classifier
    """
)


def dense_roles(path: Sequence[str], owners: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the roles that a dense map at this path may have.

    `path` are the attribute names from the model down to the map, `owners` the class names of
    the modules on the way.

    >>> dense_roles(("h", "0", "attn", "c_proj")), dense_roles(("h", "0", "mlp", "c_proj"))
    (('attention_output',), ('mlp_out',))
    >>> dense_roles(("h", "0", "attn", "c_attn"))
    ('query', 'key', 'value')
    >>> len(dense_roles(("net", "3")))
    10
    """
    names = [name for name in path if not name.isdigit()]
    if not names:
        return DENSE_ROLES
    last, above = names[-1].lower(), names[:-1]
    where = _nearest([*above], [*owners])
    if last in UNEMBEDDING:
        return ("unembedding",)
    if any(name.lower() in OTHER for name in names):
        return ("linear",)
    if where == "attention":
        return _in_attention(last)
    if where == "mlp":
        return _in_mlp(last)
    return DENSE_ROLES


def _nearest(above: list[str], owners: list[str]) -> str:
    """Return whether the nearest owner that says so is an attention or an MLP."""
    classes = [*owners[-len(above) :], *[""] * len(above)][: len(above)] if above else []
    for name, owner in zip(reversed(above), reversed(classes), strict=True):
        for word in (name, owner):
            if _MLP.search(word):
                return "mlp"
            if _ATTENTION.search(word):
                return "attention"
    return ""


def _in_attention(last: str) -> tuple[str, ...]:
    for words, roles in (
        (QUERY, ("query",)),
        (KEY, ("key",)),
        (VALUE, ("value",)),
        (KEY_VALUE, ("key", "value")),
        (FUSED, ("query", "key", "value")),
        (OUTPUT, ("attention_output",)),
    ):
        if last in words:
            return roles
    return DENSE_ROLES


def _in_mlp(last: str) -> tuple[str, ...]:
    if last in ROUTER:
        return ("router", "mlp_gate")
    for words, roles in (
        (MLP_GATE, ("mlp_gate",)),
        (MLP_IN, ("mlp_in",)),
        (MLP_OUT, ("mlp_out",)),
        (MLP_FUSED, ("mlp_gate", "mlp_in")),
    ):
        if last in words:
            return roles
    return DENSE_ROLES

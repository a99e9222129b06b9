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
    r"mlp|ffn|ffw|feed_?forward|dense_?relu_?dense|expert|^ff$|_ff$|^intermediate$|^moe|swiglu"
    r"|^fc_?layer",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"projector|projection$|^project|pointer_proj$|merger|merging|connector|adapter|aligner"
    r"|resampler|pooler|pooling|hypernetwork|_heads?$|^head$|classif|embed|predictor|prediction|predict_"
    r"|score|scoring|sub_?sampl|prenet|postnet|quantizer|sentence_summary"
    r"|enc_out(put)?(_|$)|mask_mlp$",
    re.IGNORECASE,
)
"""Parts of a model that are neither attention nor MLP: what joins two of its parts, and heads."""

_OTHER_MAP = re.compile(
    r"_proj$|^proj$|project|transform|_head$|^head$|classif|embed|score|reduction|predict|pooler"
    r"|merger|regress|logits|_mapping|qa_outputs|seq_relationship|summary|^connector$|^adapter$"
    r"|conv_out|^enc_output$",
    re.IGNORECASE,
)
"""A map outside of every stack of layers that is named as one of these is none of their maps."""

_POSITION = re.compile(
    r"(^|_)pos(_|$|it|emb)|^wpe$|relative_attention_bias|distance_embedding|rel_embeddings"
    r"|rel_attn_embed|^pe_[kv]$|^bias_values$|tile_embedding|(row|column)_embed|reference_point",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(^|_)\d+$")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


QUERY = _words(
    """
    q wq q_proj query q_lin to_q linear_q query_proj w_q q_linear q_a_proj q_b_proj lin_q
    query_layer query_projection q_proj_weight query_global w2e_query e2w_query e2e_query
    layout_query projection_query q_head wq_b wq_a project_q pos_query_proj q_up_proj q_down_proj
    query_dense q_a q_b
    """
)
KEY = _words(
    """
    k wk k_proj key k_lin to_k linear_k key_proj w_k k_linear lin_k key_layer key_projection
    k_proj_weight key_global layout_key projection_key k_head project_k pos_key_proj pos_proj
    relative_k_proj linear_pos
    """
)
VALUE = _words(
    """
    v wv v_proj value v_lin to_v linear_v value_proj w_v v_linear lin_v value_layer
    value_projection v_proj_weight value_global layout_value projection_value v_head project_v
    values_vision_proj values_text_proj v_proj_current v_proj_delayed
    """
)
KEY_VALUE = _words(
    """
    kv kv_proj to_kv key_value kv_a_proj_with_mqa kv_b_proj kv_a_proj
    """
)
QUERY_KEY = _words("query_key qk qk_proj")
FUSED = _words(
    """
    qkv qkv_proj query_key_value wqkv to_qkv c_attn in_proj qkv_linear in_proj_weight w_qkv
    in_proj_qkv
    """
)
OUTPUT = _words(
    """
    o wo o_proj out_proj c_proj dense to_out out_lin proj w_o linear_out out output
    output_proj o_lin projection dense_output proj_out out_projection fc_out projection_layer
    attention_out out_vision_proj out_text_proj conv_out_layer output_projection proj_out_layer
    """
)
ATTENTION_OTHER = _words(
    """
    gate_proj g_proj b_proj a_proj f_proj f_a_proj f_b_proj g_a_proj g_b_proj in_proj_z in_proj_a
    in_proj_b in_proj_ba weights_proj sampling_offsets attention_weights sink_proj output_gate
    conv_kernel_layer dt_proj q_gate_proj gate gate_layer g_linear linear_gate
    """
)
"""Gates, weights and offsets beside the maps that attention is made of."""

MLP_IN = _words(
    """
    fc1 up_proj c_fc wi lin1 linear1 dense_h_to_4h fc_in up dense_in wi_1 linear_1 lin_1
    intermediate_dense in_proj fc_1 w_1 linear_fc1 layer_1 ffw_layer_1 dense1 dense_1 layer1
    proj_in proj_up pwconv1 pointwise_conv1 w_in intermediate ffn
    """
)
MLP_GATE = _words(
    """
    gate_proj wi_0 w3_gate proj_up_gate
    """
)
MLP_IN_OR_GATE = _words("w1 w3 w_0 linear_v1 w1_proj w3_proj")
"""Of two maps side by side models disagree which is the gate; of one alone it is the first."""

MLP_OUT = _words(
    """
    fc2 down_proj c_proj wo lin2 linear2 w2 dense_4h_to_h down fc_out dense_out linear_2 lin_2
    output_dense out_proj fc_2 w_2 proj linear_fc2 layer_2 ffw_layer_2 dense2 dense_2 layer2
    proj_out proj_down pwconv2 pointwise_conv2 w_out output ffn_output output_linear
    """
)
MLP_FUSED = _words(
    """
    gate_up_proj wi_fused w12 input_linear gate_and_up_proj
    """
)
PAIRS = (
    *(("fc1", "fc2"), ("linear1", "linear2"), ("lin1", "lin2"), ("linear_fc1", "linear_fc2")),
    *(("pwconv1", "pwconv2"), ("pointwise_conv1", "pointwise_conv2"), ("ffn", "ffn_output")),
)
"""The two maps of an MLP where they stand in a layer itself."""

FIRST_AND_SECOND = _words("fc1 fc2 up_proj down_proj gate_proj")

UNEMBEDDING = _words(
    """
    lm_head embed_out unembed unembedding output_embeddings audio_lm_head
    """
)
LANGUAGE_HEADS = _words("lm_head predictions lm_heads generator_lm_head")
ROUTER = _words(
    """
    wg gate
    """
)
ROUTER_OWNER = re.compile(r"router|^gate$|gating", re.IGNORECASE)
_OF_LAYERS = (QUERY, KEY, VALUE, KEY_VALUE, FUSED, OUTPUT, MLP_IN, MLP_GATE, MLP_OUT, MLP_FUSED)
GENERIC = _words("linear layer base_layer base")
"""Names of a map in a wrapper, which say nothing beside the wrapper's own name."""


def dense_roles(
    path: Sequence[str], owners: Sequence[str] = (), *, root: str = "", heads: bool = False
) -> tuple[str, ...]:
    """Return the roles that a dense map at this path may have.

    `path` are the attribute names from the model down to the map, `owners` the class names of
    the modules on the way, `root` that of the model itself: an attention may be a whole model.
    With `heads`, a map of the model itself that is called `proj` or so is a head, as it is in the
    models of transformers; elsewhere a word that layers use too leaves it open.

    >>> dense_roles(("h", "0", "attn", "c_proj")), dense_roles(("h", "0", "mlp", "c_proj"))
    (('attention_output',), ('mlp_out',))
    >>> dense_roles(("h", "0", "attn", "c_attn"))
    ('query', 'key', 'value')
    >>> dense_roles(("layer", "0", "intermediate", "dense")), dense_roles(("pooler", "dense"))
    (('mlp_in',), ('linear',))
    >>> len(dense_roles(("net", "3")))
    10
    """
    classes = [*owners, *[""] * len(path)][: len(path)]
    steps = [(name.lower(), owner) for name, owner in zip(path, classes, strict=True)]
    while len(steps) > 1 and _is_wrapped(steps[-1][0], steps[-2][0]):
        steps.pop()
    if not steps:
        return DENSE_ROLES
    if steps[-1][0].isdigit():
        return _in_sequence(steps)
    names = [name for name, _ in steps]
    last, above = names[-1], steps[:-1]
    if last in UNEMBEDDING:
        return ("unembedding",)
    if any(name in LANGUAGE_HEADS for name in names[:-1]):
        return ("unembedding",) if last == "decoder" else ("linear",)
    if names[-1:] == ["dense"] and names[-2:-1] == ["intermediate"]:
        return ("mlp_in",)
    if names[-2:] == ["output", "dense"] and names[-3:-2] and names[-3].isdigit():
        return ("mlp_out",)
    if last == "reduction":
        return ("linear",)
    if len(names) > 1 and names[-2].isdigit() and not _OTHER.search("".join(names[-3:-2])):
        for first, second in PAIRS:
            if last in (first, second):
                return ("mlp_in",) if last == first else ("mlp_out",)
    where, depth = _nearest(above)
    if not where and _nearest([("", root)])[0] in ("attention", "mlp"):
        where = _nearest([("", root)])[0]
    own = _of_other_part(above, depth)
    if where in ("attention", "pooling"):
        found = _in_attention(last)
        own = own or where == "pooling"
        return ("linear",) if own and found in (("attention_output",), DENSE_ROLES) else found
    if where == "mlp":
        return ("linear",) if own else _in_mlp(last, names)
    if where == "other" or (len(steps) < len(path) and _OTHER.search(last)):
        return ("linear",)
    stacked = any(_NUMBERED.search(name) for name in names)
    other = _OTHER_MAP.search(last) and (heads or not any(last in words for words in _OF_LAYERS))
    return ("linear",) if not stacked and other else DENSE_ROLES


def table_roles(path: Sequence[str]) -> tuple[str, ...]:
    """Return the role of a table of rows that are looked up, from its name in the model.

    >>> table_roles(("h", "wpe")), table_roles(("decoder", "embed_tokens"))
    (('position',), ('token_embedding',))
    """
    named = bool(path) and _POSITION.search(path[-1])
    return ("position",) if named else ("token_embedding",)


def _is_wrapped(last: str, above: str) -> bool:
    """Return whether the last name says nothing beside that of its owner: `q_proj.linear`."""
    if last in GENERIC:
        return not above.isdigit()
    return last == "proj" and above in QUERY | KEY | VALUE | FIRST_AND_SECOND


def _in_sequence(steps: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the roles of a map that has a number for a name: those of a head's maps are known."""
    steps = list(steps)
    while steps and (steps[-1][0].isdigit() or steps[-1][0] in ("layers", "hidden_layers")):
        steps.pop()
    if not steps:
        return DENSE_ROLES
    if steps[-1][0] in LANGUAGE_HEADS:
        return ("unembedding",)
    where, depth = _nearest(steps)
    other = where == "other" or (where == "mlp" and _of_other_part(steps, depth))
    between = any(name.isdigit() for name, _ in steps[depth:])
    return ("linear",) if other and not between else DENSE_ROLES


def _nearest(above: Sequence[tuple[str, str]]) -> tuple[str, int]:
    """Return what the nearest owner that says so is, and which of the owners it is.

    An owner's name says more than that of its class.
    """
    for depth in range(len(above) - 1, -1, -1):
        name, owner = above[depth]
        for word in (name, owner):
            if _MLP.search(word) and not (word == name and _OTHER.search(name)):
                return "mlp", depth
            if _ATTENTION.search(word):
                return "attention", depth
            if word == name and _OTHER.search(name) and name not in OUTPUT:
                # A head that attends has queries, keys and values of its own.
                return ("pooling" if _ATTENTION.search(owner) else "other"), depth
    return "", 0


def _of_other_part(above: Sequence[tuple[str, str]], depth: int) -> bool:
    """Return whether the owner at this depth is no layer of a stack, but part of a head or so."""
    for name, _ in reversed(above[:depth]):
        if name.isdigit():
            return False
        if _OTHER.search(name):
            return True
    return False


def _in_attention(last: str) -> tuple[str, ...]:
    for words, roles in (
        (QUERY, ("query",)),
        (KEY, ("key",)),
        (VALUE, ("value",)),
        (KEY_VALUE, ("key", "value")),
        (QUERY_KEY, ("query", "key")),
        (FUSED, ("query", "key", "value")),
        (OUTPUT, ("attention_output",)),
        (ATTENTION_OTHER, ("linear",)),
    ):
        if last in words:
            return roles
    return DENSE_ROLES


def _in_mlp(last: str, names: Sequence[str]) -> tuple[str, ...]:
    if ROUTER_OWNER.search(names[-2] if len(names) > 1 else ""):
        return ("router",)
    if last in ("router", "shared_expert_gate"):
        return ("router",)
    if last in ROUTER:
        return ("router", "mlp_gate")
    for words, roles in (
        (MLP_GATE, ("mlp_gate",)),
        (MLP_IN, ("mlp_in",)),
        (MLP_IN_OR_GATE, ("mlp_in", "mlp_gate")),
        (MLP_OUT, ("mlp_out",)),
        (MLP_FUSED, ("mlp_gate", "mlp_in")),
    ):
        if last in words:
            return roles
    return DENSE_ROLES

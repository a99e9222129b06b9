"""Roles from the names of a model's parts, in the words that published models use."""

from __future__ import annotations

import pytest

from initrate.frameworks._words import dense_roles, table_roles
from initrate.rule import DENSE_ROLES

KNOWN = {
    "h.0.attn.c_proj": ("attention_output",),
    "h.0.mlp.c_proj": ("mlp_out",),
    "h.0.mlp.c_fc": ("mlp_in",),
    "model.layers.3.self_attn.q_proj": ("query",),
    "model.layers.3.self_attn.k_proj": ("key",),
    "model.layers.3.self_attn.v_proj": ("value",),
    "model.layers.3.self_attn.o_proj": ("attention_output",),
    "model.layers.3.mlp.gate_proj": ("mlp_gate",),
    "model.layers.3.mlp.up_proj": ("mlp_in",),
    "model.layers.3.mlp.down_proj": ("mlp_out",),
    "model.layers.3.self_attn.gate_proj": ("linear",),
    "model.layers.3.mlp.gate": ("router", "mlp_gate"),
    "model.layers.3.mlp.router": ("router",),
    "model.layers.3.mlp.shared_expert_gate": ("router",),
    "model.layers.3.mlp.experts.7.w2": ("mlp_out",),
    "model.layers.3.mlp.experts.7.w1": ("mlp_in", "mlp_gate"),
    "bert.encoder.layer.0.attention.self.query": ("query",),
    "bert.encoder.layer.0.attention.output.dense": ("attention_output",),
    "bert.encoder.layer.0.intermediate.dense": ("mlp_in",),
    "bert.encoder.layer.0.output.dense": ("mlp_out",),
    "bert.pooler.dense": ("linear",),
    "cls.predictions.transform.dense": ("linear",),
    "cls.predictions.decoder": ("unembedding",),
    "lm_head": ("unembedding",),
    "lm_head.dense": ("linear",),
    "classifier": ("linear",),
    "classifier.out_proj": ("linear",),
    "score": ("linear",),
    "encoder.layers.1.fc1": ("mlp_in",),
    "encoder.layers.1.fc2": ("mlp_out",),
    "encoder.block.0.layer.0.SelfAttention.o": ("attention_output",),
    "encoder.block.0.layer.1.DenseReluDense.wi_0": ("mlp_gate",),
    "encoder.block.0.layer.1.DenseReluDense.wi_1": ("mlp_in",),
    "encoder.block.0.layer.1.DenseReluDense.wo": ("mlp_out",),
    "layers.0.attn.qkv": ("query", "key", "value"),
    "layers.0.self_attn.kv_proj": ("key", "value"),
    "layers.0.self_attn.q_proj.linear": ("query",),
    "layers.0.mlp.fc1.proj": ("mlp_in",),
    "multi_modal_projector.linear_1": ("linear",),
    "visual.merger.mlp.0": ("linear",),
    "connector.perceiver_resampler.layers.0.mlp.down_proj": ("mlp_out",),
    "vision_tower.head.attention.out_proj": ("linear",),
    "vision_tower.head.mlp.fc1": ("linear",),
    "vision_tower.deepstack_merger_list.0.linear_fc2": ("linear",),
    "text_projection": ("linear",),
    "encoder.layers.0.downsample.reduction": ("linear",),
    "mask_decoder.output_hypernetworks_mlps.0.proj_out": ("linear",),
}
OPEN = (
    "net.0",
    "net.3",
    "fc1",
    "mlp.0",
    "layers.0.mixer.in_proj",
    "layers.0.my_proj",
    "blocks_0.my_proj",
    "layers.0.mlp.layers.0",
)


@pytest.mark.parametrize(("path", "roles"), KNOWN.items())
def test_known_words(path: str, roles: tuple[str, ...]):
    assert dense_roles(path.split(".")) == roles


@pytest.mark.parametrize("path", OPEN)
def test_what_no_word_tells_stays_open(path: str):
    assert dense_roles(path.split(".")) == DENSE_ROLES


def test_the_class_of_an_owner_tells_where_its_name_does_not():
    path = ("layers", "0", "mixer", "out_proj")
    assert dense_roles(path, ("ModuleList", "Layer", "NemotronAttention")) == ("attention_output",)
    assert dense_roles(path, ("ModuleList", "Layer", "NemotronMLP")) == ("mlp_out",)


def test_the_name_of_an_owner_says_more_than_its_class():
    path = ("iou_prediction_head", "proj_out")
    assert dense_roles(path, ("SamFeedForward",)) == ("linear",)


def test_a_head_that_attends_has_queries_of_its_own():
    owners = ("VisionModel", "AttentionPoolingHead")
    assert dense_roles(("vision", "head", "k_proj"), owners) == ("key",)
    assert dense_roles(("vision", "head", "output_proj"), owners) == ("linear",)


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("h.wpe", "position"),
        ("embeddings.position_embeddings", "position"),
        ("decoder.embed_positions", "position"),
        ("attn.relative_attention_bias", "position"),
        ("self_attn.distance_embedding", "position"),
        ("h.wte", "token_embedding"),
        ("embeddings.token_type_embeddings", "token_embedding"),
        ("decompose", "token_embedding"),
    ],
)
def test_tables(path: str, role: str):
    assert table_roles(path.split(".")) == (role,)

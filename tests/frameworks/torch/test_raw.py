"""Parameters that a module holds by itself: what their names tell, and what stays unknown."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from initrate.errors import InputError
from initrate.frameworks.torch import apply, plan
from initrate.frameworks.torch._raw import raw_axes
from initrate.rule import Rule


class Owner(nn.Module):
    """Holds what it is given, as parameters and as attributes."""

    def __init__(self, shapes: dict[str, tuple[int, ...]], **attributes: object) -> None:
        super().__init__()
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape)))
        for name, found in attributes.items():
            setattr(self, name, found)


TABLES = [
    ("cls_token", (1, 1, 24), "token_embedding", 24),
    ("class_embedding", (24,), "token_embedding", 24),
    ("mask_token", (1, 24), "token_embedding", 24),
    ("register_tokens", (1, 4, 24), "token_embedding", 24),
    ("query_tokens", (1, 8, 24), "token_embedding", 24),
    ("level_embed", (3, 24), "token_embedding", 24),
    ("pos_embed", (1, 17, 24), "position", 24),
    ("position_embeddings", (17, 24), "position", 24),
    ("relative_position_bias_table", (169, 3), "position", 3),
    ("rel_pos_h", (27, 8), "position", 8),
]
KEPT = [
    ("A_log", (24, 4), "a state-space parameter"),
    ("dt_bias", (24,), "a state-space parameter"),
    ("gamma", (24,), "a layer scale"),
    ("gamma_1", (24,), "a layer scale"),
    ("lambda1", (24,), "a layer scale"),
    ("layer_scale_1", (24, 1, 1), "a layer scale"),
    ("logit_scale", (), "a temperature"),
    ("sinks", (4,), "an attention sink"),
    ("e_score_correction_bias", (8,), "a bias of a router"),
    ("gate_attn", (1,), "a gate"),
    ("alpha", (1, 24, 1), "a parameter of an activation or a gate"),
    ("pos_emb_alpha", (1,), "a parameter of an activation or a gate"),
]
UNKNOWN = [
    ("weight", (24, 24)),
    ("kernel", (24, 24)),
    ("query", (24, 24)),
    ("A", (24, 24)),
    ("D", (24, 24)),
    ("gate", (24, 24)),
    ("scale", (24, 24)),
    ("cls_token", (1, 24, 1)),
    ("pos_embed", (1, 24, 7, 7)),
    ("pos_embed", (1, 24, 1)),
    ("position_bias", (16, 24)),
    ("attention_biases", (4, 49)),
    ("gate_up_proj", (3, 24, 80)),
]


@pytest.mark.parametrize(("name", "shape", "role", "width"), TABLES)
def test_tables(name: str, shape: tuple[int, ...], role: str, width: int):
    row = plan(Owner({name: shape}), gamma=0.8).rows[0]
    assert (row.role, row.d_in, row.action) == (role, width, "draw")


@pytest.mark.parametrize(("name", "shape", "reason"), KEPT)
def test_kept(name: str, shape: tuple[int, ...], reason: str):
    row = plan(Owner({name: shape}), gamma=0.8).rows[0]
    assert (row.role, row.action, row.reason) == ("structured", "keep", reason)


@pytest.mark.parametrize(("name", "shape"), UNKNOWN)
def test_a_shape_alone_tells_nothing(name: str, shape: tuple[int, ...]):
    assert raw_axes(Owner({}), name, shape) is None
    model = Owner({name: shape})
    with pytest.raises(InputError, match=f"'{name}' is a parameter of Owner"):
        apply(model, gamma=0.8)
    assert all(bool((p == 0).all()) for p in model.parameters())


def test_d_counts_as_state_space_beside_a_log_only():
    row = plan(Owner({"A_log": (24,), "D": (24,)}), gamma=0.8).rows[1]
    assert row.action == "keep"


@pytest.mark.parametrize(
    ("shapes", "attributes", "d_ins"),
    [
        (
            {"gate_up_proj": (3, 80, 24), "down_proj": (3, 24, 40)},
            {"is_transposed": False, "is_concatenated": True},
            [24, 24, 40],
        ),
        (
            {"gate_up_proj": (3, 24, 80), "down_proj": (3, 40, 24)},
            {"is_transposed": True, "is_concatenated": False},
            [24, 24, 40],
        ),
        ({"up_proj": (3, 40, 24), "down_proj": (3, 24, 40)}, {"is_transposed": False}, [24, 40]),
    ],
)
def test_stacked_experts_lie_as_their_module_says(
    shapes: dict[str, tuple[int, ...]], attributes: dict[str, object], d_ins: list[int]
):
    rows = plan(Owner(shapes, **attributes), gamma=0.8).rows
    assert [row.d_in for row in rows] == d_ins


def test_halves_and_turns_of_gate_and_up():
    rule = Rule(gamma=0.8, gamma_by_role={"mlp_gate": 0.5})
    for concatenated, gate in ((True, slice(0, 40)), (False, slice(0, None, 2))):
        model = Owner(
            {"gate_up_proj": (64, 24, 80)}, is_transposed=True, is_concatenated=concatenated
        )
        apply(model, rule=rule)
        weight = model.get_parameter("gate_up_proj").detach()
        up = slice(40, 80) if concatenated else slice(1, None, 2)
        for part, gamma in ((gate, 0.5), (up, 0.8)):
            drawn = weight[:, :, part]
            # Five times the error of an std over so many normals.
            error = 5 / (2 * drawn.numel()) ** 0.5
            assert abs(float(drawn.std()) / 24**-gamma - 1) < error


def test_where_gate_and_up_lie_is_not_assumed():
    model = Owner({"gate_up_proj": (3, 80, 24)}, is_transposed=False)
    assert plan(model, gamma=0.8).rows[0].role == "mlp_in|mlp_gate"
    apart = Rule(gamma=0.8, gamma_by_role={"mlp_gate": 0.5})
    assert plan(model, rule=apart).rows[0].action == "refuse"


def test_biases():
    model = Owner({"bias": (24,), "gate_up_proj_bias": (3, 80), "bias_u": (4, 6)})
    assert plan(model, gamma=0.8).rows[0].role == "bias"
    assert [row.role for row in plan(model, gamma=0.8)] == ["bias", "?", "bias"]
    experts = Owner({"gate_up_proj_bias": (3, 80)}, is_transposed=True)
    assert plan(experts, gamma=0.8).rows[0].role == "bias"

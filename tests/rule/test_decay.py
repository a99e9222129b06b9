"""Weight decay by role, and its schedules."""

from __future__ import annotations

import math

import pytest

from initrate.errors import InputError
from initrate.rule import (
    DENSE_ROLES,
    ROLES,
    Decay,
    WeightRecord,
    check_decay_pairs,
    decay_factor,
    decay_window,
    refuse_troubles,
    role_decays,
)
from initrate.training import Training, weight_decay, window


def record(*roles: str, shape: tuple[int, ...] = (8, 4), refuse: str = "") -> WeightRecord:
    return WeightRecord("part.weight", shape, roles, refuse=refuse)


@pytest.mark.parametrize(
    ("policy", "left_out"),
    [
        ("all", set()),
        ("matrices", {"norm", "bias", "structured"}),
        (
            "not_embeddings",
            {"norm", "bias", "structured", "token_embedding", "position", "unembedding"},
        ),
    ],
)
def test_what_each_policy_leaves_out(policy, left_out):
    assert {role for role in ROLES if not role_decays(policy, role)} == left_out
    decay = Decay(0.1, policy)
    assert {role for role in ROLES if decay.of_role(role) == 0} == left_out


def test_a_role_wins_over_its_group_and_a_group_over_the_policy():
    decay = Decay(0.1, by_role={"qk": 0.05, "query": 0.0, "norm": 0.2})
    found = [decay.of_role(role) for role in ("query", "key", "value", "norm", "bias")]
    assert found == [0.0, 0.05, 0.1, 0.2, 0.0]


@pytest.mark.parametrize(
    ("decay", "records", "expected"),
    [
        (Decay(0.1), [record("query")], (0.1, "decayed")),
        (Decay(0.1), [record("norm", shape=(4,))], (0.0, "not decayed")),
        (Decay(0.1), [record("query", "key", "value")], (0.1, "decayed")),
        (Decay(0.1, by_role={"mlp": 0.3}), [record("mlp_gate", "mlp_in")], (0.3, "mlp")),
        (
            Decay(0.1, by_role={"mlp": 0.3, "qk": 0.3}),
            [record("mlp_in", "query")],
            (0.3, "mlp|qk"),
        ),
        # What is not known goes by its sides where the policy asks for no role.
        (Decay(0.1), [record()], (0.1, "decayed")),
        (Decay(0.1), [record(shape=(8,))], (0.0, "not decayed")),
        (Decay(0.1, "all"), [record(shape=(8,))], (0.1, "decayed")),
        (Decay(0.1, "not_embeddings"), [record(shape=(8,))], (0.0, "not decayed")),
        (Decay(0.1, by_role={"qk": 0.2}), [record(shape=(8,))], (0.0, "not decayed")),
    ],
)
def test_how_a_tensor_decays(decay, records, expected):
    found = decay.of_tensor(records)
    assert (found.weight_decay, found.group) == expected
    refuse_troubles([found])


@pytest.mark.parametrize(
    ("decay", "records", "message"),
    [
        (Decay(0.1, "not_embeddings"), [record()], "role that is not known"),
        (Decay(0.1, by_role={"qk": 0.2}), [record()], "role that is not known"),
        (Decay(0.1, by_role={"norm": 0.2}), [record(shape=(8,))], "not known"),
        (Decay(0.1, by_role={"position": 0.2}), [record(shape=(8,))], "not known"),
        (Decay(0.1, by_role={"qk": 0.2}), [record("query", "value")], "may be query, value"),
        (Decay(0.1, "not_embeddings"), [record(*DENSE_ROLES)], "may be query, key"),
        (
            Decay(0.1, by_role={"qk": 0.2}),
            [record("query"), record("key"), record("value")],
            "holds query, key, value",
        ),
        (Decay(0.1, "not_embeddings"), [record(refuse="is a thing of its own")], "of its own"),
    ],
)
def test_a_tensor_that_may_decay_in_two_ways_is_refused_by_name(decay, records, message):
    with pytest.raises(InputError, match=f"'part.weight'.*{message}") as caught:
        refuse_troubles([decay.of_tensor(records)])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Decay(-0.1), r"weight_decay is -0\.1"),
        (lambda: Decay(math.nan), "weight_decay is nan"),
        (lambda: Decay("0.1"), "weight_decay is '0.1'"),  # pyright: ignore[reportArgumentType]
        (lambda: Decay(0.1, "matrix"), "did you mean 'matrices'"),  # pyright: ignore[reportArgumentType]
        (lambda: Decay(0.1, by_role={"querry": 0.1}), "did you mean 'query'"),
        (lambda: Decay(0.1, by_role={"qk": -1.0}), "weight decay of 'qk' is -1"),
        (lambda: Decay(0.1, by_role=[("qk", 0.1)]), "expected a mapping"),  # pyright: ignore[reportArgumentType]
        (lambda: check_decay_pairs("schedule", ((5, 1.0), (2, 0.0))), "expected rising steps"),
        (lambda: check_decay_pairs("schedule", [(0, 1.0)]), "expected a tuple of"),
        (
            lambda: check_decay_pairs("schedule", ((0, math.inf),)),
            "factor of decay_schedule is inf",
        ),
        (lambda: decay_window(3, 3), "two rising steps"),
        (lambda: decay_factor(lambda step: -1.0, 4), "at step 4 is -1"),
        (lambda: decay_factor(lambda step: math.nan, 4), "at step 4 is nan"),
    ],
)
def test_bad_input_is_refused_in_one_line(make, message):
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("schedule", "factors"),
    [
        ((), [1, 1, 1, 1, 1]),
        (decay_window(1, 3), [0, 1, 1, 0, 0]),
        (decay_window(0, 2), [1, 1, 0, 0, 0]),
        (((0, 0.5), (2, 2.0)), [0.5, 0.5, 2, 2, 2]),
        (((3, 0.0),), [1, 1, 1, 0, 0]),
        (lambda step: step / 4, [0, 0.25, 0.5, 0.75, 1]),
    ],
)
def test_schedules(schedule, factors):
    assert [decay_factor(schedule, step) for step in range(5)] == factors


def test_the_laboratory_has_the_same_window_and_factors():
    assert window is decay_window
    training = Training(weight_decay=0.2, decay_schedule=decay_window(2, 4))
    for step in range(6):
        assert weight_decay(training, step) == 0.2 * decay_factor(decay_window(2, 4), step)

"""Learning rate and weight decay: closed forms against values written down by hand."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from initrate.errors import InputError
from initrate.training import Training, learning_rate, shrinkage, weight_decay, window

PAPER = Training(
    steps=77_700, warmup_steps=3_700, lr=2.5e-4, lr_start=1e-5, lr_final=1e-5, weight_decay=0.01
)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (0, 1e-5 + 2.4e-4 / 3_700),
        (1_849, 1.3e-4),
        (3_699, 2.5e-4),
        # Half of the cosine, and its end.
        (3_700 + 37_000 - 1, 1.3e-4),
        (77_699, 1e-5),
    ],
)
def test_the_papers_schedule(step: int, expected: float) -> None:
    """arXiv 2405.05409, Appendix A: 1e-5, up to 2.5e-4 in 10 epochs, cosine to 1e-5 in 200."""
    assert learning_rate(PAPER, step) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("schedule", "middle", "end"),
    [("constant", 1e-3, 1e-3), ("linear", 0.55e-3, 1e-4), ("cosine", 0.55e-3, 1e-4)],
)
def test_each_schedule_has_its_middle_and_end(
    schedule: Literal["constant", "linear", "cosine"], middle: float, end: float
) -> None:
    recipe = Training(
        steps=300,
        warmup_steps=100,
        schedule=schedule,
        lr_final_fraction=0.1,
    )
    assert learning_rate(recipe, 199) == pytest.approx(middle)
    assert learning_rate(recipe, 299) == pytest.approx(end)


def test_a_warm_up_longer_than_the_run_ends_on_its_way() -> None:
    assert learning_rate(Training(steps=100, warmup_steps=200, lr=1e-3), 99) == pytest.approx(5e-4)


def test_decay_follows_its_window_and_its_mode() -> None:
    recipe = Training(
        lr=1e-2,
        weight_decay=0.1,
        decay_schedule=window(10, 20),
        warmup_steps=0,
        schedule="constant",
    )
    assert [weight_decay(recipe, step) for step in (9, 10, 19, 20)] == [0, 0.1, 0.1, 0]
    assert shrinkage(recipe, 10) == pytest.approx(1e-3)
    independent = Training(weight_decay=0.1, decay_mode="independent")
    assert shrinkage(independent, 0) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"batch": 2.0}, r"batch is 2\.0"),
        ({"lr": float("nan")}, "lr is nan"),
        ({"lr": 1e39}, r"lr is 1e\+39"),
        ({"weight_decay": 1e7}, "below 10000000"),
        ({"lr": "1e-3"}, "lr is '1e-3'"),
        ({"weight_decay": -0.1}, r"weight_decay is -0\.1"),
        ({"beta2": 1.0}, r"beta2 is 1\.0"),
        ({"clip_norm": 0}, "clip_norm is 0"),
        ({"eps": 0}, "eps is 0"),
        ({"optimizer": "adam"}, "did you mean 'adamw'"),
        ({"decay_schedule": ((5, 1.0), (5, 0.0))}, "rising steps"),
        ({"decay_schedule": ((0, -1.0),)}, "factor of decay_schedule is -1"),
        ({"decay_schedule": 5}, "tuple of"),
        ({"decay_schedule": (("a", 1.0),)}, "step of decay_schedule is 'a'"),
        ({"decay_schedule": ((1, "a"),)}, "factor of decay_schedule is 'a'"),
        ({"lr": 10**400}, "lr is beyond all bounds"),
        ({"steps": 10**30}, "steps is beyond all bounds"),
        ({"loss": "chosen", "loss_positions": ("a",)}, "loss_positions is 'a'"),
        ({"loss": "chosen", "loss_positions": (1, 1)}, "twice"),
        ({"loss": "chosen"}, "give positions"),
        ({"loss_positions": (1,)}, "give positions"),
        ({"log_every": 0}, "log_every is 0"),
    ],
)
def test_a_bad_recipe_is_refused_in_one_line(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Training(**changes)  # pyright: ignore[reportArgumentType]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ((5, 5), "two rising steps"),
        ((7, 3), "two rising steps"),
        ((-1, 3), "the first step of a decay window is -1: expected a whole number"),
        (("x", 3), "the first step of a decay window is 'x'"),
        ((0, None), "the last step of a decay window is None"),
    ],
)
def test_a_window_that_is_none_is_refused(edges: tuple[Any, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        window(*edges)

"""Axes: names, paths, and setting the field of a cell."""

from __future__ import annotations

import pytest

from initrate.errors import InputError
from initrate.model import ModelConfig
from initrate.rule import Rule, named_rule
from initrate.study import (
    Cell,
    StudyConfig,
    axis_name,
    axis_path,
    axis_paths,
    cells,
    override,
    with_value,
)
from initrate.tasks import AnchorTask, variant
from initrate.training import Seeds, Training


@pytest.fixture
def cell() -> Cell:
    """Return a cell of defaults."""
    return Cell(variant("34-wrong"), ModelConfig(), Rule(), Training(), Seeds())


@pytest.mark.parametrize(
    ("given", "name", "path"),
    [
        ("gamma", "gamma", "rule.gamma"),
        ("rule.gamma", "gamma", "rule.gamma"),
        ("depth", "depth", "model.n_layers"),
        ("n_layers", "depth", "model.n_layers"),
        ("model.n_layers", "depth", "model.n_layers"),
        ("lr", "lr", "training.lr"),
        ("training.weight_decay", "weight_decay", "training.weight_decay"),
        ("gamma_qk", "gamma_qk", "rule.gamma_by_role.qk"),
        ("rule.gamma_by_role.qk", "gamma_qk", "rule.gamma_by_role.qk"),
        ("qk", "gamma_qk", "rule.gamma_by_role.qk"),
        ("task.pool", "pool", "task.pool"),
        ("split_modulus", "split_modulus", "task.split_modulus"),
        ("activation", "activation", "model.activation"),
        ("variant", "variant", "task.variant"),
    ],
)
def test_names_and_paths(given: str, name: str, path: str) -> None:
    assert axis_name(given) == name
    assert axis_path(given) == path


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("gama", "did you mean 'gamma'"),
        ("training.learning_rate", "unknown axis"),
        ("seeds.init", r"give it in \[seeds\]"),
        ("init", r"give it in \[seeds\]"),
        ("decay_schedule", "not one number or word"),
        ("", "unknown axis"),
    ],
)
def test_unknown_names(given: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        axis_name(given)


def test_every_axis_can_be_set_to_what_it_is(cell: Cell) -> None:
    """No axis is offered that would not work, and setting one changes nothing else."""
    for name, path in axis_paths().items():
        section, field = path.split(".", 1)
        if name == "shape" or "gamma_by_role" in path:
            continue
        found = getattr(getattr(cell, section), field)
        same = with_value(cell, name, "none" if found is None and section == "training" else found)
        if found is not None or section == "training":
            assert same == cell, name


@pytest.mark.parametrize(
    ("name", "found", "read"),
    [
        ("gamma", 0.8, lambda c: c.rule.gamma),
        ("gamma_qk", 0.9, lambda c: c.rule.draw("query").gamma),
        ("gamma_mlp_out", 0.9, lambda c: c.rule.draw("mlp_out").gamma),
        ("bias", "torch", lambda c: c.rule.bias),
        ("depth", 5, lambda c: c.model.n_layers),
        ("tied", True, lambda c: c.model.tied),
        ("lr", 3e-4, lambda c: c.training.lr),
        ("batch", 64, lambda c: c.training.batch),
        ("pool", 1000, lambda c: c.task.pool),
        ("vocabulary", 201, lambda c: c.task.vocabulary),
        ("variant", "without-34", lambda c: c.task.variant),
        ("rule", "gpt2", lambda c: c.rule.name),
    ],
)
def test_setting(cell: Cell, name: str, found: object, read: object) -> None:
    changed = with_value(cell, name, found)
    assert read(changed) == found  # pyright: ignore[reportCallIssue]
    assert changed.id != cell.id


def test_no_clipping_is_said_in_words(cell: Cell) -> None:
    assert with_value(cell, "clip_norm", "none").training.clip_norm is None


@pytest.mark.parametrize(
    ("name", "found", "says"),
    [
        ("gamma", "large", "gamma"),
        ("gamma", True, "gamma"),
        ("gamma", float("nan"), "gamma"),
        ("depth", 0, "n_layers is 0"),
        ("depth", 2.5, "n_layers is 2.5"),
        ("lr", "fast", "lr is 'fast'"),
        ("steps", 0, "steps is 0"),
        ("activation", "rellu", "did you mean 'relu'"),
        ("variant", "34-wrnog", "did you mean '34-wrong'"),
        ("rule", "gtp2", "did you mean 'gpt2'"),
        ("shape", "laptpo", "did you mean 'laptop'"),
        ("key_high", 1000, "key"),
        ("length", 1, "length"),
    ],
)
def test_setting_what_is_not_valid_is_one_line(
    cell: Cell, name: str, found: object, says: str
) -> None:
    with pytest.raises(InputError, match=says) as caught:
        with_value(cell, name, found)
    assert "\n" not in str(caught.value)


def test_gamma_of_a_rule_that_has_none(cell: Cell) -> None:
    with pytest.raises(InputError, match="no effect"):
        with_value(with_value(cell, "rule", "gpt2"), "gamma", 0.5)


def test_another_variant_keeps_what_was_changed() -> None:
    config = StudyConfig(
        name="variants",
        task=variant("34-wrong", pool=500, vocabulary=201),
        axes={"pool": (500, 600), "variant": ("34-wrong", "without-34")},
    )
    tasks = [cell.task for cell in cells(config)]
    expected = [variant(name, pool=n, vocabulary=201) for n in (500, 600) for name in VARIANTS]
    assert tasks == expected


VARIANTS = ("34-wrong", "without-34")


def test_another_rule_keeps_gamma_where_it_has_one() -> None:
    cell = Cell(variant("34-wrong"), ModelConfig(), Rule(gamma=0.8), Training(), Seeds())
    names = ("paper-code-2501.08537", "gpt2")
    assert [with_value(cell, "rule", name).rule for name in names] == [
        named_rule("paper-code-2501.08537", gamma=0.8),
        named_rule("gpt2"),
    ]


def test_override_takes_a_field_out_of_the_axes(config: StudyConfig) -> None:
    changed = override(config, {"gamma": 1, "training.steps": 40})
    assert (changed.rule.gamma, changed.training.steps) == (1.0, 40)
    assert list(changed.axes) == ["depth"]
    assert isinstance(changed.task, AnchorTask) and changed.task == config.task

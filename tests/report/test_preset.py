from __future__ import annotations

from dataclasses import replace

import pytest

from initrate.report import demo_config
from initrate.report._preset import origin_of
from initrate.study import PRESETS, override, preset

LAPTOP = preset("laptop")


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_known_and_unchanged(name):
    origin = origin_of(preset(name))
    assert origin is not None
    assert (origin.name, origin.changed, origin.words) == (name, (), "")
    assert origin.demonstration == (name in ("laptop", "laptop-34-wrong", "lr-wd"))


def test_the_demo_is_one():
    origin = origin_of(demo_config())
    assert origin is not None
    assert (origin.name, origin.demonstration) == ("demo", True)


@pytest.mark.parametrize(
    "config",
    [
        replace(LAPTOP, seeds=(1, 2, 3, 4, 5)),
        replace(LAPTOP, seeds=(1,), seed_axes={"init": (1, 2)}),
        replace(LAPTOP, axes={"gamma": (0.6, 0.7), "depth": (2,)}),
        replace(LAPTOP, axes={"depth": (1, 3), "gamma": (0.3,)}),
        override(LAPTOP, {"depth": 2}),
        replace(LAPTOP, name="mine"),
        replace(LAPTOP, axes={**LAPTOP.axes, "lr": (4e-3,)}),
    ],
)
def test_fewer_seeds_and_values_are_no_change(config):
    origin = origin_of(config)
    assert origin is not None
    assert origin.changed == ()


@pytest.mark.parametrize(
    ("config", "changed"),
    [
        (override(LAPTOP, {"steps": 20, "variant": "34-wrong"}), "task, steps"),
        (override(LAPTOP, {"depth": 9}), "depth"),
        (override(LAPTOP, {"shape": "laptop"}), "model"),
        (override(LAPTOP, {"rule": "gpt2"}), "rule"),
        (replace(LAPTOP, axes={**LAPTOP.axes, "gamma": (0.6, 0.65)}), "gamma"),
        (replace(LAPTOP, axes={**LAPTOP.axes, "lr": (4e-3, 1e-3)}), "lr"),
        (replace(LAPTOP, axes={**LAPTOP.axes, "variant": ("34-wrong",)}), "variant"),
        (replace(LAPTOP, protocol="best-lr", lrs=(1e-3, 4e-3)), "learning rates"),
        (override(LAPTOP, {"weight_decay": 0.1}), "weight decay"),
    ],
)
def test_what_is_changed_is_named(config, changed):
    origin = origin_of(config)
    assert origin is not None
    assert origin.words == f"Changed from the preset laptop: {changed}."


def test_a_study_of_its_own_comes_from_no_preset():
    assert origin_of(replace(LAPTOP, description="A demonstration of mine.")) is None
    assert origin_of(replace(LAPTOP, description="")) is None

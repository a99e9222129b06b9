"""Options become the study that they say."""

from __future__ import annotations

from pathlib import Path

from initrate.cli import parsed
from initrate.study import StudyConfig, dump_study, preset


def config(*words: str) -> StudyConfig:
    return parsed(words).config()  # pyright: ignore[reportAttributeAccessIssue]


def test_without_options_it_is_the_preset():
    assert config("phase") == preset("laptop")
    assert config("run", "--preset", "lr-wd") == preset("lr-wd")


def test_ranges_include_their_end_and_are_rounded():
    axes = config("phase", "--gamma", "0.3:1.0:0.1", "--depth", "2,3,4").axes
    assert axes["gamma"] == (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    assert axes["depth"] == (2, 3, 4)


def test_rate_goes_across_and_depth_down_whatever_the_preset_has():
    axes = config("phase", "--preset", "lr-wd", "--depth", "2,3", "--gamma", "0.5,0.8").axes
    assert list(axes)[:2] == ["gamma", "depth"]
    assert set(preset("lr-wd").axes) <= set(axes)


def test_seeds_are_a_count_or_a_list():
    assert config("phase", "--seeds", "4").seeds == (1, 2, 3, 4)
    assert config("phase", "--seed-list", "11,22").seeds == (11, 22)
    assert config("phase", "--seed-list", "7").seeds == (7,)


def test_task_shape_and_rule_are_named():
    found = config(
        *("phase", "--task", "34-wrong", "--shape", "paper-2405.05409"),
        *("--rule", "paper-2405.05409"),
    )
    assert found.task.variant == "34-wrong"
    assert found.model.d_model == 400
    assert found.rule.name == "paper-2405.05409"
    assert found.axes == preset("laptop").axes


def test_set_sets_one_value_and_makes_an_axis_of_several():
    found = config("phase", "--set", "training.lr=2e-3", "--set", "weight_decay=0.01,0.1")
    assert found.training.lr == 2e-3
    assert found.axes["weight_decay"] == (0.01, 0.1)
    assert config("phase", "--set", "model.n_layers=2,5").axes["depth"] == (2, 5)
    assert config("phase", "--set", "activation=relu").model.activation == "relu"


def test_set_takes_an_axis_away():
    assert "depth" not in config("phase", "--set", "depth=2").axes


def test_best_lr_takes_the_papers_nine_rates_or_those_given():
    nine = config("phase", "--protocol", "best-lr").lrs
    assert (len(nine), nine[0], nine[-1]) == (9, 1e-4, 3e-4)
    assert config("phase", "--protocol", "best-lr", "--lrs", "1e-3,2e-3").lrs == (1e-3, 2e-3)
    single = config("phase", "--preset", "paper", "--protocol", "single")
    assert (single.protocol, single.lrs) == ("single", ())


def test_a_study_file_is_run_as_it_is(tmp_path: Path):
    file = tmp_path / "study.toml"
    file.write_text(dump_study(preset("smoke")))
    assert config("run", str(file)) == preset("smoke")
    assert config("run", str(file), "--set", "lr=0.1").training.lr == 0.1

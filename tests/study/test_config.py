"""Studies: grids, seeds, protocols, and TOML."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from initrate.errors import InputError
from initrate.model import ModelConfig
from initrate.rule import Rule, Std
from initrate.study import (
    PRESETS,
    StudyConfig,
    cells,
    config_digest,
    config_to_dict,
    default_folder,
    dump_study,
    grid,
    load_study,
    plan_execution,
    preset,
    preset_text,
)
from initrate.tasks import variant
from initrate.training import Seeds, Training, window


def test_seeds_go_first(config: StudyConfig) -> None:
    """A whole one-seed diagram comes before anything of the next seed."""
    points = grid(config)
    assert [point.seed for point in points] == [1] * 8 + [2] * 8
    assert [point.axes for point in points[:8]] == [point.axes for point in points[8:]]
    assert points[1].axes == {"gamma": 0.4, "depth": 2}
    assert points[1].cell.model.n_layers == 2 and points[1].cell.rule.gamma == 0.4
    assert points[8].cell.seeds == Seeds.all(2)


def test_crossed_seeds() -> None:
    crossed = StudyConfig(
        name="crossed",
        task=variant("34-wrong"),
        axes={"gamma": (0.5,)},
        seeds=(7,),
        seed_axes={"init": (1, 2), "order": (3, 4)},
    )
    found = [cell.seeds for cell in cells(crossed)]
    pairs = [(1, 3), (1, 4), (2, 3), (2, 4)]
    assert found == [Seeds(init=i, pool=7, order=o, evaluation=7) for i, o in pairs]
    assert {point.seed for point in grid(crossed)} == {None}


def test_best_lr_trains_every_cell_at_every_rate() -> None:
    config = StudyConfig(
        name="best",
        task=variant("34-wrong"),
        axes={"gamma": (0.5, 0.8)},
        protocol="best-lr",
        lrs=(1e-4, 2e-4),
    )
    found = [(cell.training.lr, cell.rule.gamma) for cell in cells(config)]
    assert found == [(1e-4, 0.5), (1e-4, 0.8), (2e-4, 0.5), (2e-4, 0.8)]
    assert "lr" in config.all_axes and "lr" not in config.axes


TEXT = """
schema = 1
name = "mine"
description = "all sections"

[task]
variant = "34-wrong+probe"
pool = 5000
vocabulary = 201

[model]
shape = "paper-2405.05409"
n_layers = 3

[rule]
name = "paper-code-2501.08537"
gamma = 0.7
gamma_by_role = { qk = 0.5 }

[training]
steps = 50
lr = 1
clip_norm = "none"
decay_schedule = { window = [10, 20] }

[axes]
gamma = "0.3:0.5:0.1"
training.batch = [32, 64]
"model.d_ff" = 100

[seeds]
list = [4, 5]
init = [1, 2]

[protocol]
kind = "best-lr"
lrs = "1e-4:3e-4:1e-4"
"""


def test_a_study_file() -> None:
    config = load_study(TEXT)
    assert config.task == variant("34-wrong+probe", pool=5000, vocabulary=201)
    assert config.model == replace(
        ModelConfig(d_model=400, d_k=200, d_v=200, d_ff=1200, norm_position="post"),
        activation="relu",
        n_layers=3,
    )
    assert config.rule.name == "paper-code-2501.08537" and config.rule.bias == "torch"
    assert config.training == Training(
        steps=50, lr=1.0, clip_norm=None, decay_schedule=window(10, 20)
    )
    assert config.axes == {"gamma": (0.3, 0.4, 0.5), "batch": (32, 64), "d_ff": (100,)}
    assert (config.seeds, config.seed_axes) == ((4, 5), {"init": (1, 2)})
    assert config.lrs == (1e-4, 2e-4, 3e-4)
    assert load_study(dump_study(config)) == config


def test_lrs_of_the_protocol_do_not_fit_an_lr_axis() -> None:
    with pytest.raises(InputError, match="both set the learning rate"):
        load_study(TEXT.replace('"model.d_ff" = 100', "lr = [0.1]"))


@given(
    gammas=st.lists(st.floats(-2, 3), min_size=1, max_size=4, unique=True),
    lr=st.floats(0, 1),
    seeds=st.lists(st.integers(0, 2**62), min_size=1, max_size=3, unique=True),
    text=st.text(min_size=0, max_size=20),
    by_role=st.dictionaries(st.sampled_from(["qk", "vo", "mlp_in"]), st.floats(-1, 2), max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_toml_round_trip(
    gammas: list[float], lr: float, seeds: list[int], text: str, by_role: dict[str, float]
) -> None:
    config = StudyConfig(
        name="n" + "".join(c for c in text if c.isprintable()),
        description="".join(c for c in text if not 0xD800 <= ord(c) <= 0xDFFF),
        task=variant("without-34"),
        rule=Rule(gamma_by_role=by_role, draws={"unembedding": Std(0.02)}),
        training=Training(lr=lr),
        axes={"gamma": tuple(gammas)},
        seeds=tuple(seeds),
    )
    read = load_study(dump_study(config))
    assert read == config
    assert config_digest(read) == config_digest(config)
    assert [point.id for point in grid(read)] == [point.id for point in grid(config)]


BASE = 'schema = 1\nname = "x"\n[task]\nvariant = "34-wrong"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("schema = 1\nname = 'x'\n", r"no \[task\]"),
        (BASE.replace("schema = 1\n", ""), "schema None"),
        (BASE.replace("schema = 1", "schema = 2"), "schema 2"),
        (BASE.replace("schema = 1", "schema = true"), "schema True"),
        (BASE.replace("34-wrong", "34wrong"), "did you mean '34-wrong'"),
        (BASE.replace("variant", "varient"), "variant"),
        (BASE + "lenght = 9", "did you mean 'length'"),
        (BASE + "length = 2", "length"),
        (BASE + "key_high = 1000", "key"),
        (BASE + "unseen = [[4, 3, 1]]", "held-out pair"),
        (BASE + "overrides = { '4,3' = -6 }", "4,3"),
        (BASE + "[modle]", "did you mean 'model'"),
        (BASE + "[model]\nshape = 'laptpo'", "did you mean 'laptop'"),
        (BASE + "[model]\nn_layer = 3", "did you mean 'n_layers'"),
        (BASE + "[model]\nname = 'laptop'", "unknown model field 'name'"),
        (BASE + "name = '34-wrong'", "unknown task field 'name'"),
        (BASE.replace("34-wrong", "own-\\u001b") + "anchors = [1, 2]\nmaps = [1, 2]", "printable"),
        (BASE + "[model]\nd_model = 0", "d_model is 0"),
        (BASE + "[model]\npositions = 'rotary'\nd_k = 3", "even d_k"),
        (BASE + "[model]\nmax_positions = 5", "max_positions is 5"),
        (BASE + "[rule]\nname = 'formla'", "did you mean 'formula'"),
        (BASE + "[rule]\ngamma = 'big'", "gamma"),
        (BASE + "[rule]\ngamma = nan", "gamma"),
        (BASE + "[rule]\ngamma_by_role = { qkk = 1.0 }", "did you mean 'qk'"),
        (BASE + "[training]\nstepz = 3", "did you mean 'steps'"),
        (BASE + "[training]\nsteps = 0", "steps is 0"),
        (BASE + "[training]\nlr = -1", "lr is -1"),
        (BASE + "[axes]\ngama = [1]", "did you mean 'gamma'"),
        (BASE + "[axes]\ngamma = []", "no values"),
        (BASE + "[axes]\ngamma = [0.5, 0.5]", "0.5 twice"),
        (BASE + "[axes]\ngamma = [1, 1.0]", "1.0 twice"),
        (BASE + "[axes]\ngamma = [0.5]\nrule.gamma = [0.8]", "given twice"),
        (BASE + "[axes]\ngamma = ['a']", "gamma"),
        (BASE + "[axes]\nsteps = '0:10:5'", "steps is 0"),
        (BASE + "[axes]\nseeds.init = [1]", r"give it in \[seeds\]"),
        (BASE + "[seeds]\ncount = 0", "count of seeds is 0"),
        (BASE + "[seeds]\ncount = true", "count of seeds is True"),
        (BASE + "[seeds]\nlist = []", "at least one"),
        (BASE + "[seeds]\nlist = [1, 1]", "1 twice"),
        (BASE + "[seeds]\nlist = [-1]", "seed is -1"),
        (BASE + "[seeds]\nlist = [0.5]", "seed is 0.5"),
        (BASE + "[seeds]\nlist = 'a'", "at least one"),
        (BASE + "[seeds]\ncount = 2\nlist = [1]", "both count and list"),
        (BASE + "[seeds]\ninits = [1]", "did you mean 'init'"),
        (BASE + "[seeds]\ninit = []", "no values"),
        (BASE + "[protocol]\nkind = 'best'", "did you mean 'best-lr'"),
        (BASE + "[protocol]\nkind = 'best-lr'", "give learning rates"),
        (BASE + "[protocol]\nlrs = [0.1]", "give learning rates"),
        (BASE + "[protocol]\nkind = 'best-lr'\nlrs = ['a']", "expected numbers"),
        (BASE + "[protocol]\nrates = [1]", "did you mean|unknown key"),
        (BASE + "axes = 3", "task field"),
        ("axes = 3\n" + BASE, "axes is 3"),
        (BASE.replace("'x'", "3").replace('"x"', "3"), "name is 3"),
        (BASE.replace('"x"', '""'), "name is ''"),
        (BASE.replace('"x"', '"a\\nb"'), "printable"),
        (BASE + "[axes]\nlr = '0:1:0.001'\ngamma = '0:1:0.001'", "1,002,001 cells"),
        ("schema = ", "TOML"),
    ],
)
def test_what_is_no_study_is_one_line(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        grid(load_study(text))
    assert "\n" not in str(caught.value)


def test_an_error_in_a_file_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(BASE + "[training]\nsteps = 0")
    with pytest.raises(InputError, match=r"study\.toml: training steps is 0"):
        load_study(file)


def test_two_cells_that_are_the_same_are_refused() -> None:
    config = StudyConfig(
        name="twice",
        task=variant("34-wrong"),
        seeds=(1, 2),
        # Nothing is left that the seeds of the list could set.
        seed_axes={"init": (1,), "pool": (1,), "order": (1,), "evaluation": (1, 2)},
    )
    with pytest.raises(InputError, match="one and the same"):
        cells(config)


def test_name_and_description_do_not_make_another_study(config: StudyConfig) -> None:
    assert config_digest(replace(config, name="other", description="x")) == config_digest(config)
    assert config_digest(replace(config, seeds=(1, 3))) != config_digest(config)


@pytest.mark.parametrize("name", PRESETS)
def test_presets(name: str) -> None:
    config = preset(name)
    assert config.name == name
    assert load_study(dump_study(config)) == config
    assert default_folder(config) == Path("studies") / name
    assert default_folder(replace(config, seeds=(99,))) != default_folder(config)
    assert sorted(
        id for b in plan_execution(config, threads=2).buckets for id in b.cells
    ) == sorted(point.id for point in grid(config))


def test_the_laptop_presets_say_what_they_are() -> None:
    for name in ("laptop", "laptop-34-wrong", "lr-wd"):
        assert "never evidence for a claim" in preset(name).description.replace("\n", " ")
        assert "never evidence for a claim" in PRESETS[name]
    laptop = preset("laptop")
    assert laptop.task.variant == "without-34"
    assert len(laptop.axes["gamma"]) >= 7 and laptop.axes["depth"] == (1, 2, 3)
    assert len(laptop.seeds) == 3
    assert preset("laptop-34-wrong").task.variant == "34-wrong+probe"


def test_the_paper_preset_is_the_papers_recipe() -> None:
    paper = preset("paper")
    training, model, task = paper.training, paper.model, paper.task
    assert (training.steps, training.warmup_steps, training.batch) == (77_700, 3_700, 2048)
    assert (training.lr_start, training.lr_final, training.weight_decay) == (1e-5, 1e-5, 0.01)
    assert (training.decay, training.clip_norm, training.eps) == ("all", 1.0, 1e-8)
    assert (model.d_model, model.d_k, model.d_v, model.d_ff) == (400, 200, 200, 1200)
    assert (model.norm_position, model.activation, model.n_heads) == ("post", "relu", 1)
    assert (task.variant, task.vocabulary, task.pool) == ("34-wrong", 201, 15 * 50_625)
    assert 15 * 50_625 // training.batch * 210 == training.steps
    assert len(paper.lrs) == 9 and (paper.lrs[0], paper.lrs[-1]) == (1e-4, 3e-4)
    assert paper.rule.name == "paper-2405.05409" and len(paper.seeds) == 3
    decay = preset("paper-lr-wd")
    assert decay.task.pool == 14 * 50_625
    assert 14 * 50_625 // decay.training.batch * 210 == decay.training.steps
    assert decay.axes["lr"] == (5e-5, 1e-4, 2e-4, 4e-4, 6e-4) and len(decay.seeds) == 9
    assert (decay.rule.gamma, decay.model.n_layers, decay.task.variant) == (0.5, 3, "without-34")


def test_unknown_preset() -> None:
    for read in (preset, preset_text):
        with pytest.raises(InputError, match="did you mean 'laptop'"):
            read("labtop")


HUGE = "9" * 400


@pytest.mark.parametrize(
    "lines",
    [
        f"[training]\nlr = {HUGE}",
        f"[training]\nsteps = {HUGE}",
        f"[training]\ndecay_schedule = {{ piecewise = [[0, {HUGE}]] }}",
        f"[model]\nd_model = {HUGE}",
        f"[model]\nnorm_eps = {HUGE}",
        f"[axes]\ndepth = {HUGE}",
        f"[axes]\ndepth = [1, {HUGE}]",
        f'[axes]\ndepth = "1:{HUGE}:1"',
        f'[axes]\ngamma = "0.5,{HUGE}"',
        f'[protocol]\nkind = "best-lr"\nlrs = [{HUGE}]',
        f"[seeds]\nlist = [{HUGE}]",
        f"[seeds]\ncount = {HUGE}",
        f"[rule]\ngamma = {HUGE}",
    ],
)
def test_numbers_beyond_all_bounds(lines: str) -> None:
    text = f'schema = 1\n[task]\nvariant = "34-wrong"\n{lines}\n'
    with pytest.raises(InputError) as caught:
        grid(load_study(text))
    assert len(str(caught.value)) < 200 and "\n" not in str(caught.value)


@pytest.mark.parametrize("fields", ["split_modulus", "pool", "length", "key_high", "n_anchors"])
def test_task_numbers_beyond_all_bounds(fields: str) -> None:
    text = f'schema = 1\n[task]\nvariant = "34-wrong"\n{fields} = {HUGE}\n'
    with pytest.raises(InputError, match=f"task {fields} is beyond all bounds"):
        load_study(text)


def test_positions_of_the_loss_lie_in_the_sequence() -> None:
    task = variant("34-wrong")
    for positions, inside in [((0, 8), True), ((9,), False)]:
        training = Training(loss="chosen", loss_positions=positions)
        config = StudyConfig(name="a", task=task, training=training)
        if inside:
            assert len(grid(config)) == 1
        else:
            with pytest.raises(InputError, match=r"loss_positions holds 9.*0 to 8"):
                grid(config)


def test_an_axis_that_is_an_empty_table() -> None:
    for axes in ("gamma = {}", '"rule.gamma_by_role" = {}'):
        text = f'schema = 1\n[task]\nvariant = "34-wrong"\n[axes]\n{axes}\n'
        with pytest.raises(InputError, match="is an empty table"):
            load_study(text)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"axes": [1]}, "axes is"),
        ({"axes": {5: [1]}}, "unknown axis '5'"),
        ({"seed_axes": [1]}, "seed_axes is"),
        ({"seeds": 5}, "seeds list is 5"),
        ({"lrs": 5}, "lrs is 5"),
        ({"task": 5}, "task is 5"),
        ({"model": 5}, "model is 5"),
        ({"rule": "formula"}, "rule is 'formula'"),
        ({"training": None}, "training is None"),
    ],
)
def test_other_types_are_input_errors(fields: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        StudyConfig(**{"name": "a", "task": variant("34-wrong"), **fields})


@pytest.mark.parametrize("found", [{"name": "x"}, "laptop", None])
def test_what_is_no_study_is_refused(found: object) -> None:
    for function in (config_to_dict, config_digest, default_folder):
        with pytest.raises(InputError, match="expected a StudyConfig"):
            function(found)  # pyright: ignore[reportArgumentType]

"""The laboratory from Python: the smoke preset from beginning to end, and what is said when not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from initrate import lab
from initrate.errors import InputError, StoreError
from initrate.study import BucketDone, Event, dump_study, preset


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> lab.Study:
    """Return the smoke preset, trained by the engine."""
    study = lab.phase("smoke", out=tmp_path_factory.mktemp("lab") / "smoke")
    events: list[Event] = []
    assert study.run(on_event=events.append, threads=1) is study
    assert any(isinstance(event, BucketDone) for event in events)
    return study


def test_tables(smoke: lab.Study) -> None:
    cells = smoke.cells()
    assert cells["gamma"].to_list() == [0.5, 0.8]
    assert [row["n_seeds"] for row in smoke.summary()] == [1, 1]
    assert smoke.curves(cells["cell"][0])["step"].to_list() == [0, 5, 10, 15, 20]
    assert repr(smoke) == f"Study 'smoke' in {smoke.folder}: 2 cells, all trained"


def test_in_a_notebook(smoke: lab.Study) -> None:
    page = smoke._repr_html_()
    assert page.count("<tr>") == 3 and "not_trained" in page and "gamma" in page


def test_report(smoke: lab.Study, tmp_path: Path) -> None:
    page = smoke.report(out=tmp_path / "page")
    assert page.suffix == ".html" and page.is_file()


def test_nothing_is_trained_before_run(tmp_path: Path) -> None:
    study = lab.phase("smoke", out=tmp_path / "s")
    assert repr(study).endswith("2 cells, none trained")
    assert "<table>" not in study._repr_html_()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StoreError, match="does not exist"):
        study.cells()


def test_what_a_phase_diagram_is_made_of() -> None:
    study = lab.phase(
        "laptop", gamma="0.4:0.6:0.1", depth=[2], seeds=[5, 6], settings={"lr": 1, "d_model": 32}
    )
    config = study.config
    assert config.axes == {"gamma": (0.4, 0.5, 0.6), "depth": (2,)}
    assert (config.seeds, config.training.lr, config.model.d_model) == ((5, 6), 1.0, 32)
    assert config.training.steps == preset("laptop").training.steps
    assert study.folder.parent == Path("studies") and study.folder.name.startswith("laptop-")
    assert lab.phase("laptop").folder == Path("studies/laptop")
    assert lab.phase("smoke", seeds=3).config.seeds == (1, 2, 3)


def test_a_study_file_and_a_configuration(tmp_path: Path) -> None:
    config = replace(preset("smoke"), name="mine")
    (tmp_path / "study.toml").write_text(dump_study(config))
    assert lab.study(tmp_path / "study.toml").config == config
    assert lab.study(str(tmp_path / "study.toml"), out="x").folder == Path("x")
    assert lab.study(config).config is config


def test_opening_a_folder(smoke: lab.Study) -> None:
    assert lab.open_study(smoke.folder).cells().equals(smoke.cells())


def test_names_from_files_are_escaped(tmp_path: Path) -> None:
    config = replace(preset("smoke"), name="<script>alert('x')</script>")
    study = lab.study(config)
    assert "<script>" not in study._repr_html_() and "&lt;script&gt;" in study._repr_html_()
    assert study.folder.parent == Path("studies") and "<" not in study.folder.name


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"preset": "labtop"}, "did you mean 'laptop'"),
        ({"gamma": "a:b:c"}, "axis gamma"),
        ({"gamma": []}, "no values"),
        ({"gamma": [float("nan")]}, "finite"),
        ({"depth": 0}, "n_layers is 0"),
        ({"depth": [2.5]}, "n_layers is 2.5"),
        ({"seeds": 0}, "count of seeds is 0"),
        ({"seeds": []}, "at least one"),
        ({"seeds": "three"}, "seeds is 'three'"),
        ({"seeds": True}, "seeds is True"),
        ({"settings": {"lrr": 1}}, "did you mean 'lr'"),
        ({"settings": [1]}, "settings is"),
        ({"settings": {5: 1}}, "unknown axis '5'"),
        ({"out": 5}, "the folder is 5"),
        ({"preset": ["laptop"]}, "unknown preset"),
        ({"depth": 10**26}, "beyond all bounds"),
    ],
)
def test_bad_input_is_said_before_anything_is_run(options: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        lab.phase(**options)  # pyright: ignore[reportArgumentType]

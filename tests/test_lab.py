"""The laboratory from Python: the smoke preset from beginning to end, and what is said when not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from initrate import lab
from initrate.errors import InputError, StoreError
from initrate.study import (
    BucketDone,
    BucketFailed,
    BucketProgress,
    BucketStarted,
    Event,
    dump_study,
    preset,
)
from initrate.tasks import variant


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> lab.Study:
    """Return the smoke preset, trained by the engine."""
    study = lab.phase("smoke", out=tmp_path_factory.mktemp("lab") / "smoke")
    events: list[Event] = []
    assert study.run(on_event=events.append, threads=1) is study
    assert any(isinstance(event, BucketDone) for event in events)
    return study


def test_run_tells_how_far_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab.phase("smoke", gamma=[0.5], settings={"steps": 2}, out=tmp_path / "s").run(threads=1)
    note, done = capsys.readouterr().err.splitlines()
    assert note.startswith("note: the warm-up of 5 steps is longer than the training")
    assert done.startswith("1 of 1 runs are trained")


def test_while_a_bucket_runs_a_line_comes_about_every_15_s(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = lab._Lines()
    lines.take(BucketStarted("a", 0, 2, ["c"], resumed=False))
    for step in range(0, 101, 10):
        lines.take(BucketProgress("a", 0, 2, step, 100, step * 0.6, {}))
    lines.take(BucketDone("a", 0, 2, 60.0, [], 1, 2))
    # Of what the checkpoint held, no time is told: 20 steps took 16 s, 40 are left.
    lines.take(BucketStarted("b", 1, 2, ["d"], resumed=True))
    for step, seconds in ((40, 1.0), (60, 17.0)):
        lines.take(BucketProgress("b", 1, 2, step, 100, seconds, {}))
    lines.take(BucketFailed("b", 1, 2, ["d"], "RuntimeError: out of memory"))
    assert capsys.readouterr().err.splitlines() == [
        "bucket 1 of 2 is at step 30 of 100, 18.0 s gone, about 42.0 s left",
        "bucket 1 of 2 is at step 60 of 100, 36.0 s gone, about 24.0 s left",
        "bucket 1 of 2 is at step 90 of 100, 54.0 s gone, about 6.0 s left",
        "1 of 2 runs are trained, the last bucket in 60 s",
        "bucket 2 of 2 is at step 60 of 100, 17.0 s gone, about 32.0 s left",
        "bucket 2 of 2 failed: RuntimeError: out of memory",
    ]


LONG = """
import os, signal, sys
from initrate import lab
from initrate.study import BucketProgress, BucketStarted

def listen(event):
    if isinstance(event, BucketStarted):
        print("resumed" if event.resumed else "fresh", flush=True)
    if isinstance(event, BucketProgress):
        print(event.step, flush=True)
        for _ in range(int(sys.argv[1])):
            os.kill(os.getpid(), signal.SIGINT)

settings = {"steps": 200, "log_every": 50}
lab.phase("smoke", settings=settings, out="study").run(threads=1, on_event=listen)
"""


def test_ctrl_c_keeps_all_and_the_next_run_goes_on(tmp_path: Path) -> None:
    source = str(Path(lab.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}

    def run(n_signals: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", LONG, str(n_signals)]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=400
        )

    first, at_once, second, last = run(1), run(2), run(1), run(0)
    assert first.returncode == at_once.returncode == second.returncode == -signal.SIGINT
    assert first.stderr.splitlines()[0].startswith("stopping at the next step")
    told = "KeyboardInterrupt: 0 of 2 runs are trained; run() goes on from here (study)"
    assert first.stderr.splitlines()[-1] == second.stderr.splitlines()[-1] == told
    # The first is heard after step 1; two in a row end the run before it comes to another step.
    assert first.stdout.split() == ["fresh", "0"]
    assert at_once.stdout.split() == ["resumed", "50"]
    assert at_once.stderr.splitlines()[-1] == "KeyboardInterrupt"
    assert second.stdout.split() == ["resumed", "50"]
    assert (last.returncode, last.stdout.split()) == (0, ["resumed", "100", "150", "200"])


def test_a_ctrl_c_after_the_last_step_is_heard_too(tmp_path: Path) -> None:
    study = lab.phase("smoke", gamma=[0.5], settings={"steps": 2}, out=tmp_path / "s")

    def at_the_end(event: Event) -> None:
        if isinstance(event, BucketDone):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match="1 of 1 runs are trained"):
        study.run(threads=1, on_event=at_the_end)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert study.cells().height == 1


@pytest.mark.parametrize("kind", ["should_stop", "handler", "thread"])
def test_ctrl_c_is_left_alone_where_it_is_anothers(tmp_path: Path, kind: str) -> None:
    study = lab.phase("smoke", gamma=[0.5], settings={"steps": 2}, out=tmp_path / "s")
    mine = signal.default_int_handler if kind != "handler" else lambda number, frame: None
    handlers: list[object] = []
    options: dict[str, Any] = {"should_stop": lambda: False} if kind == "should_stop" else {}

    def run() -> None:
        study.run(
            threads=1,
            on_event=lambda event: handlers.append(signal.getsignal(signal.SIGINT)),
            **options,
        )

    before = signal.signal(signal.SIGINT, mine)
    try:
        if kind == "thread":
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        else:
            run()
    finally:
        signal.signal(signal.SIGINT, before)
    assert set(handlers) == {mine} and study.cells().height == 1


@pytest.mark.parametrize("name", ["on_event", "should_stop"])
@pytest.mark.parametrize("found", [5, 0, "f", np.ones(2)])
def test_what_cannot_be_called_is_refused_at_the_start(
    tmp_path: Path, name: str, found: object
) -> None:
    options: dict[str, Any] = {name: found}
    with pytest.raises(InputError, match=f"{name} is .*: expected a function"):
        lab.phase("smoke", out=tmp_path / "s").run(**options)
    assert list(tmp_path.iterdir()) == []


def test_only_public_names_are_shown() -> None:
    assert dir(lab) == sorted(lab.__all__)
    assert all(hasattr(lab, name) for name in lab.__all__)


def test_tables(smoke: lab.Study) -> None:
    cells = smoke.cells()
    assert cells["gamma"].to_list() == [0.5, 0.8]
    assert [row["n_seeds"] for row in smoke.summary()] == [1, 1]
    assert smoke.table().columns[:4] == ["cell", "gamma", "lr", "seed"]
    assert "label" in smoke.table().columns and len(smoke.table().columns) < 12
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
        ({"settings": {"activation": np.ones(2)}}, "expected one number, word or switch"),
        ({"protocol": np.ones(2)}, "unknown protocol"),
        ({"task": np.ones(2)}, "variant is array"),
        ({"gamma": 0.5, "settings": {"rule.gamma": 0.6}}, "gamma and the setting 'rule.gamma'"),
        ({"settings": {"lr": 1e-3, "training.lr": 1e-4}}, "lr and training.lr set the same"),
        ({"out": 5}, "the folder is 5"),
        ({"out": "x" * 10_000}, "too long a name"),
        ({"out": "a\udcff"}, "is not UTF-8"),
        ({"preset": ["laptop"]}, "unknown preset"),
        ({"depth": 10**26}, "beyond all bounds"),
    ],
)
def test_bad_input_is_said_before_anything_is_run(options: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        lab.phase(**options)  # pyright: ignore[reportArgumentType]


def test_the_folder_is_quoted_where_it_would_break_the_line() -> None:
    assert "\n" not in repr(lab.phase("smoke", out="a\nb"))


def test_phase_takes_the_names_of_the_command_line() -> None:
    config = lab.phase(
        "smoke", task="34-wrong", shape="laptop", rule="paper-2405.05409", seeds=[4, 7]
    ).config
    assert (config.task.variant, config.rule.name) == ("34-wrong", "paper-2405.05409")
    assert (config.model.d_model, config.seeds) == (64, (4, 7))


def test_phase_takes_a_task_made_in_python_with_a_map_that_is_a_function() -> None:
    task = variant("34-wrong", maps=[5, 1, lambda x: 119 - x, -8], overrides={})
    config = lab.phase("smoke", task=task).config
    assert config.task.answer(30, (3, 1)) == 94


@pytest.mark.parametrize(
    ("protocol", "lrs", "expected"),
    [
        ("best-lr", None, 9),
        ("best-lr", [1e-3, 2e-3], 2),
        ("single", None, 0),
        (None, None, 0),
    ],
)
def test_phase_takes_a_protocol(protocol, lrs, expected: int) -> None:
    assert len(lab.phase("smoke", protocol=protocol, lrs=lrs).config.lrs) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lrs": [1e-3]}, "lrs goes with the protocol 'best-lr'"),
        ({"protocol": "best"}, "best"),
        ({"task": "34-wrnog"}, "did you mean '34-wrong'"),
        ({"shape": "latpop"}, "did you mean 'laptop'"),
        ({"seeds": 1.5}, "seeds is 1.5: expected a count"),
    ],
)
def test_phase_refuses(given, message: str) -> None:
    with pytest.raises(InputError, match=message):
        lab.phase("smoke", **given)

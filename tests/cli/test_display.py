"""The board, the diagram and the lines of progress, without training anything."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console, RenderableType
from rich.text import Text

from initrate.cli import main
from initrate.cli._board import Board
from initrate.cli._diagram import diagram
from initrate.cli._display import PlainLines
from initrate.cli._dry_run import SECONDS, Size, print_sizes, roughly, sizes_of
from initrate.cli._next import next_step
from initrate.cli._output import show, write
from initrate.cli._progress import Pace, Progress, Speed
from initrate.cli._summary import summary_table
from initrate.study import (
    BucketDone,
    BucketFailed,
    BucketProgress,
    BucketStarted,
    Prospect,
    StudyConfig,
    StudyStarted,
    override,
    plan_execution,
    preset,
)


def shown(renderable: RenderableType, *, colour: bool = False, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=colour)
    console.print(renderable)
    return console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]


def config(**changes: object) -> StudyConfig:
    axes = {"gamma": (0.5, 0.8), "depth": (1, 2)}
    return replace(preset("smoke"), axes=axes, seeds=(1, 2), **changes)


def row(cell: str, label: str, **further: object) -> dict[str, object]:
    return {"cell": cell, "label": label, "diverged": False, **further}


def progress_of(board: Board, *cells: str, step: int, share: float) -> BucketProgress:
    scores = {cell: {"inferential_accuracy": share} for cell in cells}
    return BucketProgress("b", 0, 1, step, 20, step / 10, scores)


def test_the_diagram_fills_in_seed_by_seed():
    board = Board(config())
    lines = shown(diagram(board)).splitlines()
    assert lines[1].split() == ["depth", "\\", "gamma", "0.5", "0.8"]
    assert [line.split() for line in lines[3:5]] == [["1", "··", "··"], ["2", "··", "··"]]
    board.finish(row(board.points[0].id, "composed"))
    board.finish(row(board.points[5].id, "mirrored"))
    board.progress(board.points[1].id, {"inferential_accuracy": 0.74}, 0.5)
    board.fail(board.points[3].id)
    lines = shown(diagram(board)).splitlines()
    assert [line.split() for line in lines[3:5]] == [["1", "C·", "··"], ["2", "7M", "?·"]]
    legend = " ".join(lines[6:])
    assert "C composed (1)" in legend and "M mirrored (1)" in legend
    assert "failed (1)" in legend and "to come (4)" in legend


def test_labels_have_a_letter_and_a_colour():
    board = Board(config())
    board.finish(row(board.points[0].id, "composed"))
    assert "\x1b[1;34mC" in shown(diagram(board), colour=True)


@pytest.mark.parametrize(
    "axes",
    [{}, {"lr": (1e-3,)}, {"lr": (1e-3, 2e-3), "batch": (8, 16), "gamma": (0.5, 0.8)}],
)
def test_any_number_of_axes_has_a_diagram(axes: dict[str, tuple[object, ...]]):
    board = Board(replace(preset("smoke"), axes=axes))
    for point in board.points:
        board.finish(row(point.id, "mixed"))
    # One letter a run, and one in the legend.
    assert shown(diagram(board)).count("X") == len(board.points) + 1


def test_under_best_lr_a_seed_shows_the_rate_of_lowest_loss():
    board = Board(config(protocol="best-lr", lrs=(1e-3, 2e-3)))
    place = board.places[0.5, 1]
    assert len(place) == 4
    board.finish(row(place[0], "mixed", final_training_loss=0.2))
    assert [line.split() for line in shown(diagram(board)).splitlines()[3:4]] == [["1", "··", "··"]]
    board.finish(row(place[1], "composed", final_training_loss=0.1))
    board.finish(row(place[2], "mixed", final_training_loss=0.5))
    board.finish(row(place[3], "diverged", final_training_loss=float("nan"), diverged=True))
    assert [line.split() for line in shown(diagram(board)).splitlines()[3:4]] == [["1", "CX", "··"]]


def test_under_best_lr_the_legend_counts_the_letters():
    board = Board(config(protocol="best-lr", lrs=(1e-3, 2e-3)))
    for k, cell in enumerate(board.places[0.5, 1]):
        label = "mixed" if k % 2 else "composed"
        board.finish(row(cell, label, final_training_loss=0.1 + k % 2))
    text = shown(diagram(board))
    assert "C composed (2)" in text and "mixed" not in text


def test_the_summary_claims_no_more_than_its_seeds_show():
    def of(n_seeds: int, **further: object) -> str:
        found = {"gamma": 0.5, "n_seeds": n_seeds, "labels": {}, "median": 0.5, **further}
        return shown(summary_table([found], ["gamma"]))

    assert "0.50 (one seed)" in of(1, low=0.5, high=0.5)
    assert "0.50 (one seed)" in of(1, low=None, high=None, coverage=0.0)
    assert "range of 3 seeds, covers 75 %" in of(3, low=0.4, high=0.6, coverage=0.75)
    assert "0.40 to 0.60, range of 5 seeds, covers 93 %" in of(5, low=0.4, high=0.6)
    assert "covers" not in of(4, low=0.4, high=0.6, coverage=None)
    assert "0.40 to 0.60, 96% interval" in of(6, low=0.4, high=0.6)


def test_under_best_lr_maxima_are_called_maxima():
    found = {"gamma": 0.5, "n_seeds": 1, "labels": {"mixed": 1}, "median": 0.31, "low": None}
    found |= {"high": None, "max_over_lr_inferential_accuracy": 0.87}
    text = " ".join(shown(summary_table([found], ["gamma"])).split())
    assert "composed: maximum" in text and "0.87" in text
    assert "maxima may come from different runs" in text
    assert "mirrored: maximum" not in text


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (({"not_trained": 2}, {"composed": 2}), "initrate phase trains the diagram"),
        (({"mixed": 1}, {"composed": 1}), "--seeds 3"),
        (({"mixed": 2}, {"composed": 2}), "--gamma 0.5:0.8:0.06"),
        (({"composed": 1, "mixed": 1}, {"mixed": 2}), "no border"),
    ],
)
def test_the_next_step_follows_from_the_state(labels: tuple[dict[str, int], ...], expected: str):
    rows = [
        {"gamma": gamma, "n_seeds": sum(of_row.values()), "labels": of_row}
        for gamma, of_row in zip((0.5, 0.8), labels, strict=True)
    ]
    line = next_step(rows, preset("smoke"))
    assert line.startswith("next: ") and expected in line and "\n" not in line


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (20, "the preset laptop has {own:,} steps: --set steps={own}"),
        (None, "give them more steps, as in --set steps={twice}"),
    ],
)
def test_more_steps_are_those_of_the_preset_where_a_study_has_fewer(
    steps: int | None, expected: str
):
    laptop = preset("laptop")
    own = laptop.training.steps
    study = laptop if steps is None else override(laptop, {"steps": steps})
    line = next_step([{"gamma": 0.5, "n_seeds": 1, "labels": {"not_trained": 1}}], study)
    assert line.endswith(expected.format(own=own, twice=2 * own))


@pytest.mark.parametrize("columns", ["0", "5"])
def test_a_narrow_terminal_shows_whole_words(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("COLUMNS", columns)
    show(diagram(Board(config())))
    assert "depth \\ gamma" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["phase", "--help"])
    assert "--memory-limit" in capsys.readouterr().out


@pytest.mark.parametrize("seconds", [0.01, 1592, 3e12, 1e30])
def test_the_table_of_a_dry_run_breaks_no_word_at_80_columns(
    seconds: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("COLUMNS", "80")
    print_sizes([Size(12, 1024, 9999, 9999, 999_999_999, 1.2e20, 2.0**36, seconds)], Path("s"))
    lines = capsys.readouterr().out.splitlines()
    assert "parameters" in lines[1] and "operations" in lines[1]
    assert roughly(seconds) in lines[3] and len(lines) == 6


def test_measuring_the_speed_has_an_end(monkeypatch: pytest.MonkeyPatch):
    asked: list[float] = []

    def measured(cell: object, *, seconds: float, threads: int | None) -> float:
        asked.append(seconds)
        return 1e9

    monkeypatch.setattr("initrate.cli._dry_run.measure_speed", measured)
    config = replace(preset("smoke"), axes={"d_model": tuple(range(4, 44, 2))})
    sizes = sizes_of(config, Prospect(plan_execution(config, threads=1), None))
    assert len(sizes) == len(asked) == 20
    assert sum(asked) <= SECONDS + 1e-9


def test_the_share_done_weighs_cells_by_their_operations():
    board = Board(config())
    deep = [point.id for point in board.points if point.axes["depth"] == 2]
    for cell in deep:
        board.finish(row(cell, "mixed"))
    assert 0.5 < board.share_done < 1
    for point in board.points:
        board.finish(row(point.id, "mixed"))
    assert board.share_done == 1


def test_the_time_left_counts_what_this_process_did():
    pace = Pace(began=0.0, share_before=0.5)
    assert pace.words(0.5, now=10.0) == "10.0 s gone"
    assert pace.words(0.6, now=10.0) == "10.0 s gone, about 40.0 s left"
    assert pace.words(1.0, now=50.0) == "50.0 s gone"


def test_the_speed_is_of_all_models_and_begins_anew_with_a_bucket():
    board, speed = Board(config()), Speed()
    speed.take(progress_of(board, "a", "b", step=5, share=0))
    assert speed.words() == ""
    speed.take(progress_of(board, "a", "b", step=15, share=0))
    assert speed.words() == "20 model steps a second"
    speed.take(replace(progress_of(board, "c", step=5, share=0), bucket="c"))
    assert speed.words() == ""


def test_without_a_terminal_events_become_lines(capsys: pytest.CaptureFixture[str]):
    study = config()
    progress = Progress(Board(study))
    lines, cells = PlainLines(progress), [point.id for point in progress.board.points]
    plan = plan_execution(study, threads=1)
    lines.take(StudyStarted(Path("here"), study, plan, 1, 8, [row(cells[0], "mixed")], ("mind",)))
    lines.take(BucketStarted("b", 0, 2, cells[1:4], resumed=False))
    lines.take(progress_of(progress.board, *cells[1:4], step=10, share=0.5))
    lines.take(BucketDone("b", 0, 2, 1.0, [row(cell, "composed") for cell in cells[1:4]], 4, 8))
    lines.take(BucketFailed("c", 1, 2, cells[4:], "MemoryError: no room"))
    first, note, second, third = capsys.readouterr().err.splitlines()
    assert note == "note: mind"
    assert first == f"here: 8 runs in {len(plan.buckets)} buckets, 1 done already"
    assert second.startswith("4 of 8 runs, 5") and second.endswith(": 3 composed, 1 mixed")
    assert third == "bucket 2 of 2 failed: MemoryError: no room"
    assert progress.board.failed == set(cells[4:])


def test_the_summary_has_a_row_a_point_and_the_mirrored_share_where_there_is_one():
    rows = [
        {"gamma": 0.5, "n_seeds": 3, "labels": {"composed": 2, "mixed": 1}, "median": 0.9312}
        | {"low": 0.4, "high": 1.0, "median_symmetric": None},
        {"gamma": 0.8, "n_seeds": 3, "labels": {"mirrored": 3}, "median": 0.0}
        | {"low": 0.0, "high": 0.1, "median_symmetric": 0.97},
    ]
    text = shown(summary_table(rows, ["gamma"]), width=120)
    assert "2 composed, 1 mixed" in text
    assert "0.93 (0.40 to 1.00, range of 3 seeds, covers 75 %)" in text
    assert "mirrored: median" in text and "0.97" in text
    assert "mirrored: median" not in shown(summary_table(rows[:1], ["gamma"]))


def test_the_summary_of_three_axes_and_a_probe_fits_80_columns():
    row = {"gamma": 0.5, "depth": 3, "weight_decay": 0.001, "n_seeds": 3}
    row |= {"labels": {"composed": 2, "mixed": 1}, "median": 0.5, "low": 0.1, "high": 0.9}
    row |= {"coverage": 0.75, "median_symmetric": 0.3}
    axes = ["gamma", "depth", "weight_decay"]
    lines = shown(summary_table([row] * 4, axes, 80), width=80).splitlines()
    assert len([line for line in lines if "0.50" in line]) == 4
    assert all("0.001" in line for line in lines if "0.50" in line)
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "Left out for want of width: mirrored: median" in text and "--json have all" in text
    assert "0.50 (0.10 to 0.90)" in text
    assert "Left out" not in shown(summary_table([row], axes, 200), width=200)


def test_what_the_encoding_lacks_is_written_all_the_same(monkeypatch: pytest.MonkeyPatch):
    data = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(data, encoding="ascii"))
    write("report: /tmp/\u03b3/\udcff")
    show(Text("\u03b3 \u2500"))
    assert b"report: /tmp/\\u03b3/\\udcff\n" in data.getvalue() and b"\\u03b3" in data.getvalue()


def test_shares_of_rows_that_did_not_fit_are_marked_and_explained():
    row = {"gamma": 0.5, "n_seeds": 1, "labels": {}, "median": 0.31, "median_symmetric": 0.22}
    text = shown(summary_table([{**row, "median_seen": 0.89}], ["gamma"]))
    assert "0.31* (one seed)" in text and "0.22*" in text and "* Did not fit" in text
    assert "*" not in shown(summary_table([{**row, "median_seen": 0.9}], ["gamma"]))
    assert "–*" not in shown(
        summary_table([{**row, "median": None, "median_seen": 0.1}], ["gamma"])
    )


@pytest.mark.parametrize(
    ("n_begun", "ending"),
    [
        (0, "0 done already"),
        (1, "0 done already; 1 bucket goes on from its checkpoint"),
        (2, "0 done already; 2 buckets go on from their checkpoints"),
    ],
)
def test_the_first_line_says_that_interrupted_work_is_kept(
    n_begun: int, ending: str, capsys: pytest.CaptureFixture[str]
):
    study = config()
    plan = plan_execution(study, threads=1)
    started = StudyStarted(Path("here"), study, plan, 0, 8, (), (), n_begun)
    PlainLines(Progress(Board(study))).take(started)
    assert capsys.readouterr().err.rstrip().endswith(ending)


@pytest.mark.parametrize(
    ("load", "ending"),
    [
        (0.9, "about 45 s on this machine if nothing else runs on it"),
        (2.3, "(load 2.3), so that this estimate is too high"),
    ],
)
def test_the_estimate_of_a_busy_machine_is_said_to_be_too_high(
    load: float, ending: str, capsys: pytest.CaptureFixture[str]
):
    print_sizes([Size(2, 16, 4, 1, 999, 1e9, 2.0**30, 47.0)], Path("s"), 0, load)
    assert " ".join(capsys.readouterr().out.split()).endswith(ending)


def test_a_dry_run_plans_for_the_device_of_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    arguments = ["phase", "--preset", "smoke", "--device", "cuda", "--out", str(tmp_path / "s")]
    assert main([*arguments, "--dry-run"]) == 0
    found, errors = capsys.readouterr()
    assert "operations" in found and "GiB" in found
    assert "time" not in found and "about" not in found
    assert "no time is estimated: the study is for cuda" in errors
    assert main([*arguments, "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["seconds"] is None and told["operations"] > 0 and told["memory"] > 0
    assert main(arguments) == 2
    assert not (tmp_path / "s").exists()

"""Running: events, stops, kills, failures, locks; the folder is the same whatever happened."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from initrate.errors import InputError, StoreError
from initrate.study import (
    BucketDone,
    BucketFailed,
    BucketProgress,
    BucketStarted,
    Event,
    Store,
    StudyConfig,
    StudyDone,
    StudyStarted,
    cells,
    grid,
    preset,
    run,
)
from initrate.tasks import variant
from initrate.training import Bucket, BucketResult, Execution, Interrupted
from tests.study import standin

OF_THIS_MACHINE = ("timing/", "environment.json", "running/")
"""What may differ between two runs of the same study."""


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file of a study but those that say where and when it ran."""
    files = {str(f.relative_to(folder)): f for f in folder.rglob("*") if f.is_file()}
    return {
        name: file.read_bytes()
        for name, file in sorted(files.items())
        if not name.startswith(OF_THIS_MACHINE)
    }


def test_events(config: StudyConfig, tmp_path: Path) -> None:
    events: list[Event] = []
    run(config, tmp_path / "s", threads=1, train=standin.train, on_event=events.append)
    started, *_, done = events
    assert isinstance(started, StudyStarted) and (started.n_done, started.n_cells) == (0, 16)
    assert done == StudyDone(tmp_path / "s", 16, 16, 0)
    kinds = [type(event) for event in events]
    one = [BucketStarted, *[BucketProgress] * 5, BucketDone]
    assert kinds == [StudyStarted, *one * 4, StudyDone]
    progress = events[3]
    assert isinstance(progress, BucketProgress) and (progress.step, progress.steps) == (5, 20)
    assert (
        list(progress.scores) == [cell.id for cell in cells(config) if cell.model.n_layers == 1][:4]
    )
    ends = [event for event in events if isinstance(event, BucketDone)]
    assert [event.n_done for event in ends] == [4, 8, 12, 16]
    assert {row["label"] for event in ends for row in event.rows} <= {"composed", "mixed"}
    assert [row["cell"] for row in ends[0].rows] == list(progress.scores)


def test_a_one_seed_diagram_stands_at_half_time(config: StudyConfig, tmp_path: Path) -> None:
    seen: list[list[object]] = []

    def at_half(event: Event) -> None:
        if isinstance(event, BucketDone) and event.n_done == 8:
            store = Store.open(tmp_path / "s")
            seen.append([store.cells()["seed"].to_list(), len(store.summary()), store.status])

    run(config, tmp_path / "s", threads=1, train=standin.train, on_event=at_half)
    assert seen == [[[1] * 8, 8, "running"]]


def test_the_same_bits_every_time(config: StudyConfig, trained_once: Path, tmp_path: Path) -> None:
    run(config, tmp_path / "s", threads=2, train=standin.train)
    assert contents(tmp_path / "s") == contents(trained_once)
    assert len(contents(trained_once)) == 4 * 7 + 4


def test_killed_again_and_again_it_comes_to_the_same_bits(
    config: StudyConfig, trained_once: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "s"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])}
    done: list[int] = []
    unfinished: list[int] = []
    for place in ("training", "inside the part", "after one", "before the part"):
        command = [sys.executable, "-m", "tests.study.kill_places", str(folder), place]
        killed = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert killed.returncode == -9, killed.stderr
        store = Store.open(folder)
        assert store.status == "unfinished"
        done.append(store.progress()[0])
        unfinished.append(len(list((folder / "parts").glob(".*"))))
    assert done == [0, 0, 4, 4]
    assert unfinished == [0, 1, 0, 0]
    run(config, folder, train=standin.train)
    assert contents(folder) == contents(trained_once)
    assert len(Store.open(folder).sessions) == 5
    assert list((folder / "parts").glob(".*")) == []


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return the store of the smoke preset, trained by the engine itself."""
    return run(preset("smoke"), tmp_path_factory.mktemp("engine") / "smoke", threads=1)


@pytest.mark.parametrize("last", [5, 10, 15])
def test_stopped_and_gone_on_with_the_engine_itself(
    smoke: Store, tmp_path: Path, last: int
) -> None:
    """The stop comes inside a bucket: its checkpoint is written, and the next call goes on."""
    config = preset("smoke")
    steps: list[int] = []
    resumed: list[bool] = []

    def note(event: Event) -> None:
        if isinstance(event, BucketProgress):
            steps.append(event.step)
        if isinstance(event, BucketStarted):
            resumed.append(event.resumed)

    folder = tmp_path / "stopped"
    with pytest.raises(Interrupted):
        run(config, folder, threads=1, on_event=note, should_stop=lambda: steps[-1:] == [last])
    assert Store.open(folder).progress() == (0, 2)
    assert len(list((folder / "running").glob("*.checkpoint"))) == 1
    stopped = run(config, folder, threads=1, on_event=note)
    assert resumed == [False, True]
    assert steps == sorted(set(steps)) and steps[-1] == 20
    assert contents(folder) == contents(smoke.path)
    assert stopped.cells().equals(smoke.cells())
    assert list((folder / "running").glob("*.checkpoint")) == []


def test_a_finished_study_is_left_as_it_is(store: Store, config: StudyConfig) -> None:
    before = contents(store.path), store.sessions
    events: list[Event] = []
    run(config, store.path, train=_fails, on_event=events.append)
    assert (contents(store.path), store.sessions) == before
    assert [type(event) for event in events] == [StudyStarted, StudyDone]


def _fails(bucket: Bucket, execution: Execution, **rest: object) -> BucketResult:
    raise ValueError("no\nluck")


def _fails_at_depth_2(bucket: Bucket, execution: Execution, **rest: object) -> BucketResult:
    if bucket.model.n_layers == 2:
        raise MemoryError("not enough")
    return standin.train(bucket, execution)


def test_an_error_ends_the_run_and_loses_nothing(config: StudyConfig, tmp_path: Path) -> None:
    with pytest.raises(MemoryError):
        run(config, tmp_path / "s", threads=2, train=_fails_at_depth_2)
    assert Store.open(tmp_path / "s").progress() == (4, 16)


def test_an_error_can_be_passed_by(config: StudyConfig, trained_once: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    folder = tmp_path / "s"
    options = {"threads": 2, "on_error": "continue", "on_event": events.append}
    store = run(config, folder, train=_fails_at_depth_2, **options)  # pyright: ignore[reportArgumentType]
    failed = [event for event in events if isinstance(event, BucketFailed)]
    assert [event.error for event in failed] == ["MemoryError: not enough"] * 2
    assert events[-1] == StudyDone(folder, 8, 16, 2)
    assert store.status == "unfinished" and store.progress() == (8, 16)
    run(config, folder, train=standin.train)
    assert contents(folder) == contents(trained_once)


def test_one_process_a_study(config: StudyConfig, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    refused: list[str] = []

    def meanwhile(event: Event) -> None:
        if isinstance(event, BucketStarted) and event.index == 1:
            assert Store.open(folder).status == "running"
            with pytest.raises(StoreError, match="wait for it") as caught:
                run(config, folder, train=standin.train)
            refused.append(str(caught.value))

    run(config, folder, threads=1, train=standin.train, on_event=meanwhile)
    assert len(refused) == 1 and f"process {os.getpid()} on " in refused[0]
    assert "\n" not in refused[0]


def test_a_lock_left_by_a_dead_process_is_taken_over(store: Store, config: StudyConfig) -> None:
    (store.path / "running" / "lock").write_text('{"pid": 999999, "host": "elsewhere"}')
    assert store.status == "done"
    run(config, store.path, train=standin.train)


def test_another_study_in_the_folder(store: Store, config: StudyConfig) -> None:
    before = contents(store.path)
    for other, says in [
        (replace(config, seeds=(1, 2, 3)), r"seeds\.list is \[1, 2\] there and \[1, 2, 3\] here"),
        (replace(config, axes={"gamma": (0.5,)}), r"axes\.gamma"),
        (replace(config, training=replace(config.training, lr=0.5)), r"training\.lr is 0\.001"),
    ]:
        with pytest.raises(StoreError, match=says) as caught:
            run(other, store.path, train=standin.train)
        assert "another study" in str(caught.value) and "\n" not in str(caught.value)
    assert contents(store.path) == before


def test_another_name_is_the_same_study(store: Store, config: StudyConfig) -> None:
    run(replace(config, name="renamed"), store.path, train=standin.train)
    assert Store.open(store.path).config.name == "small"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"threads": 3}, "threads is 3: the study was begun with 2"),
        ({"dtype": "float64"}, "dtype is 'float64'"),
        ({"on_error": "ignore"}, "unknown on_error"),
        ({"on_event": 5}, "on_event is 5: expected a function"),
        ({"on_event": ()}, r"on_event is \(\): expected a function"),
        ({"should_stop": True}, "should_stop is True: expected a function"),
        ({"train": 5}, "train is 5: expected a function"),
    ],
)
def test_options_that_do_not_fit(
    store: Store, config: StudyConfig, options: dict[str, object], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        run(config, store.path, **{"train": standin.train, **options})  # pyright: ignore[reportArgumentType]


def test_nothing_is_written_where_the_options_are_bad(config: StudyConfig, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        run(config, tmp_path / "s", threads=0, train=standin.train)
    with pytest.raises(InputError):
        run(config, tmp_path / "s", on_event=5, train=standin.train)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError):
        run(config, tmp_path / "s", memory_limit=1e-9, train=standin.train)
    assert list(tmp_path.iterdir()) == []


def test_results_of_other_cells_are_not_taken(config: StudyConfig, tmp_path: Path) -> None:
    def mixes_up(bucket: Bucket, execution: Execution, **rest: object) -> BucketResult:
        found = standin.train(bucket, execution)
        return replace(found, lanes=found.lanes[::-1])

    with pytest.raises(RuntimeError, match="asked for"):
        run(config, tmp_path / "s", threads=1, train=mixes_up)
    assert Store.open(tmp_path / "s").progress() == (0, 16)


def test_an_empty_folder_is_as_good_as_a_new_one(config: StudyConfig, tmp_path: Path) -> None:
    small = replace(config, axes={"gamma": (0.5,)}, seeds=(1,))
    (tmp_path / "empty").mkdir()
    (tmp_path / "deep").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "deep" / "er" / "new"):
        run(small, folder, threads=1, train=standin.train)
    assert contents(tmp_path / "empty") == contents(tmp_path / "deep" / "er" / "new")
    assert len(grid(small)) == 1


def test_both_seeds_wait_together_where_one_is_narrow(tmp_path: Path, config: StudyConfig) -> None:
    narrow = replace(config, axes={"depth": (1, 2)})
    store = run(narrow, tmp_path / "s", threads=1, train=standin.train)
    seeds = [store.cells(bucket)["seed"].to_list() for bucket in store.parts()]
    assert seeds == [[1, 2], [1, 2]]


def test_what_a_reader_should_know_is_told_at_the_start(
    config: StudyConfig, tmp_path: Path
) -> None:
    found: list[Event] = []
    run(config, tmp_path / "a", train=standin.train, on_event=found.append)
    commuting = replace(config, task=variant("34-wrong", overrides={}))
    run(commuting, tmp_path / "b", train=standin.train, on_event=found.append)
    first, second = (event for event in found if isinstance(event, StudyStarted))
    assert first.notes == ()
    assert len(second.notes) == 1 and "look-up of unordered pairs" in second.notes[0]

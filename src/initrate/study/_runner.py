"""Running a study: bucket by bucket, each finished part on the disk before the next begins."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from initrate.errors import InputError, StoreError, function_or_none, unknown
from initrate.files import leftovers, make_folder, shown, write_whole
from initrate.study import _folder
from initrate.study._begin import begin, clear_cut_off_starts, is_new
from initrate.study._config import GridPoint, StudyConfig, grid
from initrate.study._environment import now
from initrate.study._events import (
    BucketDone,
    BucketFailed,
    BucketProgress,
    BucketStarted,
    Event,
    StudyDone,
    StudyStarted,
)
from initrate.study._execution import (
    Dtype,
    ExecutionPlan,
    PlannedBucket,
    check_memory,
    check_options,
    check_plan,
    check_there,
    plan_execution,
)
from initrate.study._label import Thresholds
from initrate.study._lock import held
from initrate.study._notes import study_notes
from initrate.study._part import check_part, write_part
from initrate.study._store import Store
from initrate.study._tables import TIMING, bucket_tables, frame, parquet
from initrate.tasks import AnchorTask, loss_floors
from initrate.training import Bucket, BucketResult, Execution, Interrupted, Lane, Progress

OnError = Literal["stop", "continue"]


class Train(Protocol):
    """What trains a bucket: `initrate.training.train`, or a stand-in of the same call."""

    def __call__(
        self,
        bucket: Bucket,
        execution: Execution,
        *,
        on_progress: Callable[[Progress], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
        checkpoint: Path | None = None,
    ) -> BucketResult: ...


def run(
    config: StudyConfig,
    folder: Path | str,
    *,
    on_event: Callable[[Event], None] | None = None,
    threads: int | None = None,
    memory_limit: float | None = None,
    dtype: Dtype | None = None,
    device: str | None = None,
    plan: ExecutionPlan | None = None,
    on_error: OnError = "stop",
    should_stop: Callable[[], bool] | None = None,
    thresholds: Thresholds | None = None,
    train: Train | None = None,
) -> Store:
    """Return the store of the study, trained: begun in a new folder, or gone on with in its own.

    A folder that holds anything else is a `StoreError`, and so is a second process at work on the
    same study. When `should_stop` says so, the running bucket is checkpointed and
    `training.Interrupted` is raised; the same call goes on from there. With
    `on_error="continue"` a bucket that fails is reported and left for the next run.
    `memory_limit` is in GiB. A `plan`, as `read_plan` gives it, is replayed in place of the options
    before it: same buckets, threads and types give the same bits. `train` stands in for the engine,
    in tests or elsewhere.
    """
    if not isinstance(on_error, str) or on_error not in get_args(OnError):
        raise unknown("on_error", on_error, get_args(OnError))
    if not isinstance(config, StudyConfig):
        raise InputError(f"the study is {config!r}: expected a StudyConfig, as load_study gives")
    if thresholds is not None and not isinstance(thresholds, Thresholds):
        raise InputError(f"thresholds is {thresholds!r}: expected a Thresholds")
    listener = function_or_none("on_event", on_event) or _ignore
    function_or_none("should_stop", should_stop)
    engine = function_or_none("train", train)
    path = _folder.folder_path(folder)
    options = {"threads": threads, "dtype": dtype, "device": device}
    given = {name: option for name, option in options.items() if option is not None}
    known = prospect(
        config, path, memory_limit=memory_limit, plan=plan, there=train is None, **given
    )
    if known.store is None:
        begin(path, config, known.plan, Thresholds() if thresholds is None else thresholds)
    store = known.store or _same(path, config, given)
    make_folder(path / _folder.RUNNING)
    with held(path / _folder.LOCK):
        _clear_leftovers(path)
        session = _Session(store, listener, on_error, should_stop, engine or _engine())
        session.run()
    return Store.open(path)


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a run would do: with which plan, and in which study, if there is one already."""

    plan: ExecutionPlan
    store: Store | None

    @property
    def waiting(self) -> tuple[PlannedBucket, ...]:
        """The buckets that are not trained yet."""
        done = self.store.parts() if self.store else {}
        return tuple(bucket for bucket in self.plan.buckets if bucket.id not in done)


def prospect(
    config: StudyConfig,
    folder: Path | str,
    *,
    memory_limit: float | None = None,
    plan: ExecutionPlan | None = None,
    there: bool = True,
    **given: object,
) -> Prospect:
    """Return what a run with these options would do; all that it would refuse is refused here.

    Nothing is written. Without `there`, the device need not be one of this machine.
    """
    path = _folder.folder_path(folder)
    given = {name: option for name, option in given.items() if option is not None}
    if plan is not None:
        _check_replay(plan, config, {**given, "memory_limit": memory_limit})
    if not is_new(path):
        check_memory(memory_limit)
        store = _same(path, config, given)
        if plan not in (None, store.plan):
            raise InputError(
                f"{shown(path)} was begun with another execution plan: go on without one, or begin "
                "anew in another folder"
            )
        return Prospect(store.plan, store)
    if plan is None:
        plan = plan_execution(config, memory_limit=memory_limit, **given)  # pyright: ignore[reportArgumentType]
    if there:
        check_there(plan.device)
    return Prospect(plan, None)


def _check_replay(plan: ExecutionPlan, config: StudyConfig, given: Mapping[str, object]) -> None:
    if not isinstance(plan, ExecutionPlan):
        raise InputError(f"plan is {plan!r}: expected an ExecutionPlan, as read_plan gives it")
    said = [name for name, option in given.items() if option is not None]
    if said:
        raise InputError(
            f"{said[0]} is given beside an execution plan, which says it too: give one of the two"
        )
    check_plan(plan, config)


def _same(path: Path, config: StudyConfig, given: Mapping[str, object]) -> Store:
    store = Store.open(path)
    _folder.check_same(path, store.config, config)
    _check_options(store.plan, given)
    return store


@dataclass(slots=True)
class _Session:
    """One process at work on a study."""

    store: Store
    emit: Callable[[Event], None]
    on_error: OnError
    should_stop: Callable[[], bool] | None
    train: Train
    points: Mapping[str, GridPoint] = field(default_factory=dict)
    floors: dict[AnchorTask, float | None] = field(default_factory=dict)
    number: int = 0
    """Which session of the study this is, counted from 1."""

    def run(self) -> None:
        store, plan = self.store, self.store.plan
        self.points = {point.id: point for point in grid(store.config)}
        _check_plan(store, self.points)
        for part in store.parts().values():
            check_part(part)  # What is damaged is not gone on with, weights included.
        n_done, n_cells = store.progress()
        rows = store.cells().to_dicts()
        notes = study_notes(store.config)
        waiting = [k for k, b in enumerate(plan.buckets) if b.id not in store.parts()]
        n_begun = sum(store.checkpoint(plan.buckets[k].id).exists() for k in waiting)
        self.emit(
            StudyStarted(store.path, store.config, plan, n_done, n_cells, rows, notes, n_begun)
        )
        if waiting:
            _folder.begin_session(store.path)
            self.number = len(store.sessions)
        n_failed = 0
        for index in waiting:
            n_failed += not self._run_bucket(index)
        store.write_index()
        self.emit(StudyDone(store.path, *store.progress(), n_failed))

    def _run_bucket(self, index: int) -> bool:
        """Return whether the bucket was trained; without leave to go on, its error is raised."""
        planned = self.store.plan.buckets[index]
        place = (planned.id, index, len(self.store.plan.buckets))
        checkpoint = self.store.checkpoint(planned.id)
        self.emit(BucketStarted(*place, planned.cells, checkpoint.exists()))

        def on_progress(progress: Progress) -> None:
            scores = dict(zip(planned.cells, progress.scores, strict=True))
            self.emit(
                BucketProgress(*place, progress.step, progress.steps, progress.seconds, scores)
            )

        began = now()
        points = [self.points[cell] for cell in planned.cells]
        try:
            result = self.train(
                _bucket(points),
                self.store.plan.execution,
                on_progress=on_progress,
                should_stop=self.should_stop,
                checkpoint=checkpoint,
            )
        except (Interrupted, StoreError):
            raise
        except Exception as error:
            if self.on_error == "stop":
                raise
            line = " ".join(f"{type(error).__name__}: {error}".split())
            self.emit(BucketFailed(*place, planned.cells, line))
            return False
        self._keep(planned, points, result, began)
        checkpoint.unlink(missing_ok=True)
        rows = self.store.cells(planned.id).to_dicts()
        self.emit(BucketDone(*place, result.seconds, rows, *self.store.progress()))
        return True

    def _keep(
        self, planned: PlannedBucket, points: Sequence[GridPoint], result: BucketResult, began: str
    ) -> None:
        """The part comes last: once it is there, the bucket is done."""
        path = self.store.path
        lanes = _lanes_in_order(planned, result)
        floors = [self._floor(point.cell.task) for point in points]
        timing = {
            "bucket": planned.id,
            "n_cells": len(planned.cells),
            "session": self.number,
            "host": socket.gethostname(),
            "began": began,
            "ended": now(),
            "seconds": result.seconds,
            "threads": self.store.plan.threads,
        }
        make_folder(path / _folder.TIMING)
        write_whole(
            path / _folder.TIMING / f"{planned.id}.parquet", parquet(frame([timing], TIMING))
        )
        write_part(
            path / _folder.PARTS / planned.id,
            planned.id,
            planned.cells,
            bucket_tables(planned.id, points, lanes, floors),
            result.weights,
        )

    def _floor(self, task: AnchorTask) -> float | None:
        if task not in self.floors:
            self.floors[task] = loss_floors(task)["no_input"]
        return self.floors[task]


def _bucket(points: Sequence[GridPoint]) -> Bucket:
    first = points[0].cell
    lanes = tuple(
        Lane(point.id, point.cell.rule, point.cell.training, point.cell.seeds) for point in points
    )
    return Bucket(first.task, first.model, lanes)


def _lanes_in_order(planned: PlannedBucket, result: BucketResult) -> tuple[Any, ...]:
    found = tuple(lane.cell for lane in result.lanes)
    if found != planned.cells:
        raise RuntimeError(f"the engine gave results of {found}, asked for {planned.cells}")
    return result.lanes


def _check_plan(store: Store, points: Mapping[str, GridPoint]) -> None:
    planned = [cell for bucket in store.plan.buckets for cell in bucket.cells]
    if sorted(planned) != sorted(points):
        raise StoreError(
            f"{shown(store.path)}: its execution plan is of other cells than its study; it was "
            "begun by another version of initrate, or changed; begin it anew in another folder"
        )


def _check_options(plan: ExecutionPlan, given: Mapping[str, object]) -> None:
    stored_options = {name: getattr(plan, name) for name in ("threads", "dtype", "device")}
    check_options(**{**stored_options, **given})
    for name, option in given.items():
        stored = getattr(plan, name)
        if stored != option:
            raise InputError(
                f"{name} is {option!r}: the study was begun with {stored!r}; go on with that, or "
                "begin anew in another folder"
            )


def _clear_leftovers(path: Path) -> None:
    """Delete what a killed process left unfinished; the lock is held, so nobody writes them."""
    for folder in (
        path,
        *(path / name for name in (_folder.PARTS, _folder.TIMING, _folder.RUNNING)),
    ):
        for leftover in leftovers(folder):
            if leftover.is_dir():
                shutil.rmtree(leftover)
            else:
                with suppress(FileNotFoundError):
                    leftover.unlink()
    clear_cut_off_starts(path)


def _engine() -> Train:
    from initrate.training import train

    return train


def _ignore(event: Event) -> None:
    """Nobody listens."""

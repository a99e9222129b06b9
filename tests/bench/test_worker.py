"""An engine in a process of its own: first step, rounds, and how it may end."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Sequence

import pytest

from initrate.bench import _worker
from initrate.bench._engines import run_of
from initrate.bench._problem import Problem
from initrate.bench._worker import EngineError, Worker, peak_memory
from tests.bench.small import small


def test_a_worker_takes_rounds_and_ends() -> None:
    with Worker.start("initrate", small("laptop", steps=2), threads=1) as worker:
        assert worker.process.pid != os.getpid()
        turns = [worker.turn() for _ in range(3)]
    assert worker.first_step_seconds > 0
    assert all(turn.seconds > 0 for turn in turns)
    # An interpreter with torch takes more than 50 MB, and such a model less than 10 GB.
    assert 50e6 < turns[0].peak_memory <= turns[2].peak_memory < 10e9
    assert worker.process.exitcode == 0


def test_an_error_of_the_engine_is_its_reason() -> None:
    with pytest.raises(EngineError, match="KeyError: 'no such engine'"):
        Worker.start("no such engine", small("laptop"), threads=1)
    assert not multiprocessing.active_children()


def test_a_killed_engine_is_told() -> None:
    with Worker.start("initrate", small("laptop"), threads=1) as worker:
        os.kill(worker.process.pid or 0, signal.SIGKILL)
        with pytest.raises(EngineError, match="was killed"):
            worker.turn()


def test_peak_memory_grows_with_what_is_held() -> None:
    before = peak_memory()
    held = bytearray(os.urandom(1)) * (before + 2**26)
    assert peak_memory() - before >= 2**26
    assert len(held) > before


def test_where_the_system_does_not_say_the_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    told = peak_memory()
    monkeypatch.setattr(_worker, "_STATUS", _worker._STATUS / "nowhere")
    assert peak_memory() == pytest.approx(told, rel=0.5)


def test_an_engine_stops_where_it_is_told_to() -> None:
    told: list[Sequence[float]] = []

    def stop(losses: Sequence[float]) -> bool:
        told.append(losses)
        return False

    run_of("initrate")(Problem(small("laptop"), steps=1, threads=1), stop)
    assert len(told) == 1

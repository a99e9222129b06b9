"""An engine in a process of its own: its threads and its memory are nobody else's.

The process stays between rounds, so that engines can take turns, each of them warm.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from initrate.bench._engines import run_of
from initrate.bench._problem import Problem
from initrate.bench._sizes import Size

_GOODBYE_SECONDS = 5.0
_STATUS = Path("/proc/self/status")


class EngineError(Exception):
    """An engine that could not go on, with the reason in one line."""


@dataclass(frozen=True, slots=True)
class Started:
    """The first step is done: models built, programs compiled."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Turn:
    """A round is done."""

    seconds: float
    peak_memory: int
    """The most bytes that the process has held so far."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The engine raised an error."""

    reason: str


M = TypeVar("M", Started, Turn)


@dataclass(slots=True)
class Worker:
    """The process of one engine at one size, warm."""

    process: SpawnProcess
    connection: Connection
    first_step_seconds: float = 0.0

    @classmethod
    def start(cls, engine: str, size: Size, *, threads: int) -> Worker:
        """Return the engine after its first step and a round to warm up; or EngineError."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, engine, size, threads), daemon=True)
        process.start()
        theirs.close()
        worker = cls(process, ours)
        try:
            worker.first_step_seconds = worker._answer(Started).seconds
            worker._answer(Turn)
        except BaseException:
            worker.end(politely=False)
            raise
        return worker

    def turn(self) -> Turn:
        """Return what one more round took; EngineError where it failed."""
        with contextlib.suppress(OSError):  # Whoever has died is found by the missing answer.
            self.connection.send(True)
        return self._answer(Turn)

    def end(self, *, politely: bool = True) -> None:
        """End the process, which is waiting to be asked for a round, or else is not asked."""
        with contextlib.suppress(OSError):
            self.connection.send(False)
        self.connection.close()
        if politely:
            self.process.join(_GOODBYE_SECONDS)
        self.process.terminate()
        self.process.join()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.end(politely=kind is None)

    def _answer(self, expected: type[M]) -> M:
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            raise EngineError(_died(self.process.exitcode)) from None
        if isinstance(message, Failed):
            raise EngineError(message.reason)
        assert isinstance(message, expected)
        return message


def _died(code: int | None) -> str:
    if code == -signal.SIGKILL:
        return "its process was killed, as a system does that runs out of memory"
    return f"its process ended with code {code}"


def serve(connection: Connection, engine: str, size: Size, threads: int) -> None:
    """Train in rounds and tell of each: what the process of an engine does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started it, who ends it.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Results alone go to standard output.
    warnings.simplefilter("ignore")
    try:
        _confine(engine, threads)
        run = run_of(engine)
        began = time.perf_counter()

        def first(losses: Sequence[float]) -> bool:
            connection.send(Started(time.perf_counter() - began))
            return False

        def after(losses: Sequence[float]) -> bool:
            nonlocal began
            connection.send(Turn(time.perf_counter() - began, peak_memory()))
            going = connection.recv()
            began = time.perf_counter()
            return going

        run(Problem(size, steps=1, threads=threads), first)
        run(Problem(size, steps=size.steps, threads=threads), after)
    except (EOFError, BrokenPipeError):
        return  # Whoever asked has gone.
    except Exception as error:
        with contextlib.suppress(OSError):
            connection.send(Failed(_reason(error)))


def _confine(engine: str, threads: int) -> None:
    """Bind JAX, which has no option for it, to as many processors as it shall have threads."""
    if engine != "jax":
        return
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def _reason(error: Exception) -> str:
    line = (str(error).strip().splitlines() or ["no more is known"])[0]
    return f"{type(error).__name__}: {line[:200]}"


def peak_memory() -> int:
    """Return the most bytes of memory that this process has held.

    >>> 1e6 < peak_memory() < 1e12
    True
    """
    # getrusage would count what the parent held when this process was forked from it.
    if _STATUS.exists():
        text = _STATUS.read_text().splitlines()
        lines = dict(line.split(":", 1) for line in text if ":" in line)
        if "VmHWM" in lines:
            return 1024 * int(lines["VmHWM"].split()[0])
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak

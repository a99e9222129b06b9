"""The comparison: all engines in one run, in turns, with the peak before, between and after."""

from __future__ import annotations

import contextlib
import math
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata

from initrate.bench._engines import ENGINES, OURS, lacking
from initrate.bench._operations import operations
from initrate.bench._result import Comparison, LeftOut, Peak, Row, Spread
from initrate.bench._sizes import SIZES
from initrate.bench._worker import EngineError, Turn, Worker
from initrate.errors import InputError, unknown, whole_number
from initrate.study import n_cores

Tell = Callable[[str], None]

_PACKAGES = ("jax", "numpy", "optax", "torch")


def measure(
    sizes: Sequence[str],
    engines: Sequence[str] = tuple(ENGINES),
    *,
    seconds: float = 20.0,
    rounds: int = 3,
    threads: int | None = None,
    tell: Tell = lambda line: None,
) -> Comparison:
    """Return how fast each engine trains the models of each size.

    Every engine has a process of its own. After its first step and a round to warm up, the engines
    take turns, for at least `rounds` rounds and at least `seconds` a size; between any two turns
    the peak of a matrix product is measured. Each has `threads` threads, all cores unless given.
    An engine that is not installed, or fails, is named in `left_out`. `tell` gets lines of
    progress. A size or an engine that is not known, or given twice, is an InputError.

    >>> measure(["labtop"])
    Traceback (most recent call last):
    initrate.errors.InputError: unknown size 'labtop': did you mean 'laptop'? \
known: laptop, d128, paper-2, paper-4, paper-7, sequences
    """
    _check_names("size", sizes, SIZES)
    _check_names("engine", engines, ENGINES)
    whole_number("rounds", rounds, least=1, most=10_000)
    if not 0 <= seconds < math.inf:
        raise InputError(f"seconds is {seconds}: expected a finite number of at least 0")
    n_threads = whole_number(
        "threads", n_cores() if threads is None else threads, least=1, most=1024
    )
    reasons = {engine: lacking(engine) for engine in engines}
    left_out = [LeftOut(engine, reason) for engine, reason in reasons.items() if reason]
    for each in left_out:
        tell(f"{each.engine} is left out: {each.reason}")
    there = [engine for engine, reason in reasons.items() if reason is None]
    contests = [
        _contest(name, there, seconds=seconds, rounds=rounds, threads=n_threads, tell=tell)
        for name in sizes
    ]
    return Comparison(
        tuple(row for contest in contests for row in contest.rows),
        (*left_out, *(each for contest in contests for each in contest.left_out)),
        tuple(peak for contest in contests for peak in contest.peaks),
        environment(n_threads),
    )


def environment(threads: int) -> dict[str, object]:
    """Return what the numbers depend on: cores, threads, versions.

    >>> environment(2)["threads"]
    2
    """
    versions: dict[str, object] = {}
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {
        "cpu_count": n_cores(),
        "threads": threads,
        "machine": platform.machine(),
        "python": platform.python_version(),
        **versions,
    }


def _contest(
    name: str, engines: Iterable[str], *, seconds: float, rounds: int, threads: int, tell: Tell
) -> Comparison:
    """Return what came out at one size."""
    # With torch, which the process of JAX is to be without: it takes memory.
    from initrate.bench._gemm import fastest, peak_gflops, products

    size = SIZES[name]
    left_out: list[LeftOut] = []
    turns: dict[str, list[Turn]] = {}
    first_steps: dict[str, float] = {}
    with contextlib.ExitStack() as processes:
        workers: dict[str, Worker] = {}

        def leave_out(engine: str, error: EngineError) -> None:
            left_out.append(LeftOut(engine, str(error), name))
            tell(f"{name}: {engine} is left out: {error}")
            workers.pop(engine, None)
            turns.pop(engine, None)

        for engine in engines:
            try:
                worker = Worker.start(engine, size, threads=threads)
            except EngineError as error:
                leave_out(engine, error)
                continue
            workers[engine] = processes.enter_context(worker)
            first_steps[engine] = worker.first_step_seconds
            tell(f"{name}: {engine} is warm, its first step took {first_steps[engine]:.1f} s")
        product = fastest(products(size), threads=threads)
        gflops = [peak_gflops(product, threads=threads)]
        done, began = 0, time.perf_counter()
        while workers and (done < rounds or time.perf_counter() - began < seconds):
            for engine, worker in list(workers.items()):
                try:
                    turns.setdefault(engine, []).append(worker.turn())
                except EngineError as error:
                    leave_out(engine, error)
                gflops.append(peak_gflops(product, threads=threads))
            done += 1
            tell(_round_line(name, done, turns, gflops, size.n_models * size.steps))
    peak = Peak(name, product, tuple(gflops), operations(size).plain)
    rows = [_row(peak, engine, turns, first_steps[engine]) for engine in turns]
    return Comparison(tuple(rows), tuple(left_out), (peak,), {})


def _row(peak: Peak, engine: str, turns: dict[str, list[Turn]], first_step: float) -> Row:
    size, own = SIZES[peak.size], turns[engine]
    steps = size.n_models * size.steps
    times = Spread.of([turn.seconds / steps for turn in own])
    relative_time = None
    if OURS in turns:
        pairs = zip(own, turns[OURS], strict=True)
        relative_time = Spread.of([theirs.seconds / ours.seconds for theirs, ours in pairs])
    return Row(
        size=peak.size,
        engine=engine,
        n_models=size.n_models,
        rounds=len(own),
        step_seconds=times,
        utilisation=times.under(peak.plain_operations / 1e9 / Spread.of(peak.gflops).median),
        ceiling=operations(size).ceiling if engine == OURS else 1.0,
        relative_time=relative_time,
        first_step_seconds=first_step,
        peak_memory=own[-1].peak_memory,
    )


def _round_line(
    name: str, number: int, turns: dict[str, list[Turn]], gflops: list[float], steps: int
) -> str:
    times = [f"{engine} {1e3 * own[-1].seconds / steps:.2f} ms" for engine, own in turns.items()]
    return f"{name}, round {number}: {', '.join(times)}; peak {gflops[-1]:.0f} GFLOP/s"


def _check_names(kind: str, names: Sequence[str], known: Iterable[str]) -> None:
    known = list(known)
    for name in names:
        if name not in known:
            raise unknown(kind, name, known)
    if not names or len(set(names)) < len(names):
        found = f"{kind}s name one twice" if names else f"{kind}s are missing"
        raise InputError(f"{found}: expected some of {', '.join(known)}, each once")

"""What a benchmark found, for people."""

from __future__ import annotations

from collections.abc import Iterator

from initrate.bench._engines import OURS
from initrate.bench._result import Comparison, Peak, Spread

HEAD = (
    "size",
    "engine",
    "ms a model-step",
    "model-steps/s",
    "utilisation",
    "ceiling",
    "× initrate's time",
    "first step, s",
    "peak GiB",
)


def table(found: Comparison) -> list[tuple[str, ...]]:
    """Return a row of words for each row: medians, [least, most] of all rounds."""
    return [
        (
            row.size,
            row.engine,
            _words(row.step_seconds, 1e3),
            f"{1 / row.step_seconds.median:,.3g}",
            _words(row.utilisation),
            f"{row.ceiling:.2f}",
            "" if row.relative_time is None else _words(row.relative_time),
            f"{row.first_step_seconds:.1f}",
            f"{row.peak_memory / 2**30:.2f}",
        )
        for row in found.rows
    ]


def notes(found: Comparison) -> Iterator[str]:
    """Return lines to stand below the table: peaks, the best peer, what was left out."""
    for peak in found.peaks:
        yield _peak_line(peak)
        best, ours = found.best_peer(peak.size), found.row(peak.size, OURS)
        if best is not None and ours is not None and best.relative_time is not None:
            times = _words(best.relative_time)
            yield (
                f"{peak.size}: initrate is {times} times as fast as the best peer, {best.engine}; "
                f"rounds {ours.rounds}, models {ours.n_models}"
            )
    for each in found.left_out:
        where = "" if each.size is None else f"{each.size}: "
        yield f"{where}left out: {each.engine} ({each.reason})"
    yield ", ".join(f"{name} {value}" for name, value in found.environment.items())


def _peak_line(peak: Peak) -> str:
    product = " × ".join(f"{n:,}" for n in peak.product)
    return (
        f"{peak.size}: GEMM peak {_words(Spread.of(peak.gflops))} GFLOP/s ({product}); "
        f"a model-step is {peak.plain_operations / 1e9:.2f} GFLOP the plain way"
    )


def _words(spread: Spread, factor: float = 1.0) -> str:
    """Return the median and, in brackets, the least and the most."""
    median, least, most = (factor * x for x in (spread.median, spread.least, spread.most))
    digits = 2 if median < 10 else 1 if median < 100 else 0
    return f"{median:,.{digits}f} [{least:,.{digits}f}, {most:,.{digits}f}]"

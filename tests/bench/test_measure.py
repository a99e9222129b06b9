"""A comparison from end to end, in small; the numbers that follow from times, by hand."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator

import pytest
import torch

from initrate.bench import (
    HEAD,
    SIZES,
    Comparison,
    LeftOut,
    Peak,
    Row,
    Spread,
    measure,
    notes,
    operations,
    table,
)
from initrate.bench import _measure as module
from initrate.bench._gemm import peak_gflops
from initrate.bench._worker import EngineError, Turn
from initrate.errors import InputError
from tests.bench.small import small

SECONDS = {"initrate": (1.0, 2.0, 3.0), "eager": (4.0, 4.0, 9.0), "vmap": (8.0,)}
"""What each turn of an engine takes; vmap fails at its second."""


class Clockwork:
    """Stands for the process of an engine: every turn takes what is said beforehand."""

    def __init__(self, engine: str) -> None:
        self.seconds: Iterator[float] = iter(SECONDS[engine])
        self.first_step_seconds = 5.0
        self.memory = 2**30

    @classmethod
    def start(cls, engine: str, size: object, *, threads: int) -> Clockwork:
        if engine == "jax":
            raise EngineError("XlaRuntimeError: no")
        return cls(engine)

    def turn(self) -> Turn:
        self.memory += 1
        try:
            return Turn(next(self.seconds), self.memory)
        except StopIteration:
            raise EngineError("its process was killed") from None

    def __enter__(self) -> Clockwork:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def clockwork(monkeypatch: pytest.MonkeyPatch) -> Comparison:
    """A comparison of engines whose times are known, where one fails at once and one later."""
    monkeypatch.setattr(module, "Worker", Clockwork)
    monkeypatch.setattr("initrate.bench._gemm.peak_gflops", lambda product, *, threads: 100.0)
    absent = {"compiled": "no compiler"}
    monkeypatch.setattr(module, "lacking", absent.get)
    engines = ["initrate", "compiled", "eager", "vmap", "jax"]
    return measure(["laptop"], engines, seconds=0, rounds=3, threads=1)


def test_rows_follow_from_the_times(clockwork: Comparison) -> None:
    ours, eager = clockwork.rows
    # 8 models, 5 steps a round.
    assert ours.step_seconds == Spread(2 / 40, 1 / 40, 3 / 40)
    assert eager.relative_time == Spread(3.0, 2.0, 4.0)
    assert ours.relative_time == Spread(1.0, 1.0, 1.0)
    plain = operations(SIZES["laptop"])
    assert ours.utilisation.median == pytest.approx(plain.plain / (2 / 40) / 100e9)
    assert ours.utilisation.most == pytest.approx(plain.plain / (1 / 40) / 100e9)
    assert (ours.ceiling, eager.ceiling) == (plain.ceiling, 1.0)
    assert (ours.rounds, ours.n_models, ours.first_step_seconds) == (3, 8, 5.0)
    assert ours.peak_memory == 2**30 + 3
    assert clockwork.best_peer("laptop") == eager
    # Before, and after each turn: 3 of ours, 3 of eager, vmap's second fails.
    assert len(clockwork.peaks[0].gflops) == 1 + 3 + 3 + 2


def test_what_is_absent_or_fails_is_named(clockwork: Comparison) -> None:
    assert clockwork.left_out == (
        LeftOut("compiled", "no compiler"),
        LeftOut("jax", "XlaRuntimeError: no", "laptop"),
        LeftOut("vmap", "its process was killed", "laptop"),
    )
    assert [row.engine for row in clockwork.rows] == ["initrate", "eager"]


def test_json_has_what_is_promised(clockwork: Comparison) -> None:
    found = json.loads(json.dumps(clockwork.to_dict(), allow_nan=False))
    assert found["schema"] == 1
    promised = {"size", "engine", "utilisation", "ceiling", "steps_per_second", "peak_memory"}
    for row in found["rows"]:
        assert promised | {"first_step_seconds"} <= set(row)
        assert row["steps_per_second_least"] <= row["steps_per_second"]
    assert found["rows"][0]["steps_per_second"] == pytest.approx(20.0)
    assert found["left_out"][0] == {"engine": "compiled", "reason": "no compiler"}
    assert found["gemm"][0]["peak_gflops"] == 100.0
    assert found["environment"]["threads"] == 1
    assert found["environment"]["torch"].split("+")[0] == torch.__version__.split("+")[0]


def test_words_for_people(clockwork: Comparison) -> None:
    rows = table(clockwork)
    assert all(len(row) == len(HEAD) for row in rows)
    assert rows[0][:4] == ("laptop", "initrate", "50.0 [25.0, 75.0]", "20")
    assert rows[1][6] == "3.00 [2.00, 4.00]"
    lines = list(notes(clockwork))
    assert any(
        "initrate is 3.00 [2.00, 4.00] times as fast as the best peer, eager" in line
        for line in lines
    )
    assert "left out: compiled (no compiler)" in lines
    assert "laptop: left out: vmap (its process was killed)" in lines


def test_without_ours_nothing_stands_beside_it() -> None:
    row = Row(
        "laptop", "eager", 8, 3, Spread(1, 1, 1), Spread(0.5, 0.5, 0.5), 1.0, None, 2.0, 2**30
    )
    peak = Peak("laptop", (512, 512, 512), (100.0,), 1e9)
    alone = Comparison((row,), (), (peak,), {"threads": 1})
    assert table(alone)[0][6] == ""
    assert "relative_time" not in row.to_dict()
    assert not any("best peer" in line for line in notes(alone))


def test_a_small_comparison_from_end_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SIZES, "small", small("laptop", steps=2))
    told: list[str] = []
    found = measure(
        ["small"], ["initrate", "eager"], seconds=0, rounds=2, threads=1, tell=told.append
    )
    assert [row.engine for row in found.rows] == ["initrate", "eager"]
    assert found.left_out == ()
    for row in found.rows:
        assert row.step_seconds.least > 0 and row.first_step_seconds > 0
        assert row.relative_time is not None and row.utilisation.median > 0
    assert sum("is warm" in line for line in told) == 2
    assert sum("round" in line for line in told) >= 2
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"sizes": ["laptob"]}, "unknown size 'laptob': did you mean 'laptop'"),
        ({"engines": ["eagre"]}, "unknown engine 'eagre': did you mean 'eager'"),
        ({"sizes": ["laptop", "laptop"]}, "sizes name one twice"),
        ({"engines": []}, "engines are missing"),
        ({"seconds": float("nan")}, "seconds is nan"),
        ({"seconds": -1.0}, "seconds is -1"),
        ({"rounds": 0}, "rounds is 0"),
        ({"threads": 0}, "threads is 0"),
    ],
)
def test_bad_input_is_told(arguments: dict[str, object], words: str) -> None:
    known: dict[str, object] = {"sizes": ["laptop"], "engines": ["eager"]}
    with pytest.raises(InputError, match=words):
        measure(**(known | arguments))  # pyright: ignore[reportArgumentType]


def test_the_peak_gives_back_the_threads() -> None:
    before = torch.get_num_threads()
    assert peak_gflops((64, 32, 16), threads=1, seconds=0) > 0
    assert torch.get_num_threads() == before

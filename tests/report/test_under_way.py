from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from initrate.report._grid import make_grid
from initrate.report._headline import headline
from initrate.report._page import render_page
from initrate.report._read import read_source
from initrate.report._under_way import UnderWay, under_way
from initrate.study import Store, run
from initrate.study._lock import held
from initrate.training import Bucket, Execution, Interrupted, train
from tests.report.synthetic import synthetic
from tests.study import standin
from tests.study.conftest import small_study


def begun(folder: Path, *, checkpoint: bytes) -> Store:
    """Return the store of a small study whose second bucket was interrupted at a checkpoint."""
    n_done = 0

    def some(bucket: Bucket, execution: Execution, **options):
        nonlocal n_done
        if n_done:
            options["checkpoint"].write_bytes(checkpoint)
            raise Interrupted("stopped")
        n_done += 1
        return standin.train(bucket, execution, **options)

    with pytest.raises(Interrupted):
        run(small_study(), folder, threads=1, train=some)
    return Store.open(folder)


def header(content: object) -> bytes:
    text = json.dumps(content).encode()
    return struct.pack("<Q", len(text)) + text


def caution(store: Store) -> str:
    source = read_source(store)
    return headline(source, make_grid(source)).cautions[-1]


def test_a_checkpoint_says_how_far_its_bucket_is(tmp_path):
    store = begun(tmp_path / "study", checkpoint=header({"__metadata__": {"step": "10"}}))
    assert under_way(store) == UnderWay(4, 10, 20)
    assert caution(store) == (
        "The study is not finished: 4 of 16 runs are in; a bucket of 4 runs is at step 10 of 20, "
        "which makes 38 % of the study."
    )
    source = read_source(store)
    html = render_page(source, make_grid(source), (), ())
    assert '<progress max="16" value="6"' in html


@pytest.mark.parametrize(
    ("n_done", "step", "part"),
    [(0, 0, "less than 1 %"), (0, 1, "less than 1 %"), (0, 500, "11 %"), (14, 999, "99 %")],
)
def test_a_part_of_a_study_is_neither_none_nor_all(n_done, step, part):
    source = synthetic(axes=(), n_seeds=18)
    source = replace(source, cells=source.cells[:n_done], under_way=UnderWay(4, step, 1000))
    said = headline(source, make_grid(source)).cautions[-1]
    assert said.endswith(f"which makes {part} of the study.")


@pytest.mark.parametrize(
    "checkpoint",
    [
        b"",
        b"short",
        b"\xff" * 64,
        header([]),
        header({"__metadata__": {}}),
        header({"__metadata__": {"step": "many"}}),
        header({"__metadata__": {"step": "21"}}),
        header({"__metadata__": {"step": "-1"}}),
    ],
)
def test_what_cannot_be_read_of_it_is_left_out(tmp_path, checkpoint):
    store = begun(tmp_path / "study", checkpoint=checkpoint)
    assert under_way(store) == UnderWay(4)
    assert caution(store).endswith("4 of 16 runs are in; a bucket of 4 runs is under way.")


def test_the_checkpoint_of_the_engine_is_read(tmp_path):
    steps = iter(range(1000))
    with pytest.raises(Interrupted):
        run(
            small_study(),
            tmp_path / "study",
            threads=1,
            train=train,
            should_stop=lambda: next(steps) >= 7,
        )
    found = under_way(Store.open(tmp_path / "study"))
    assert found is not None
    assert found.steps == 20
    assert found.step is not None
    assert 0 < found.step < 20
    assert found.done == pytest.approx(found.n_cells * found.step / 20)


def test_a_study_that_waits_has_no_bucket_under_way(tmp_path):
    store = run(small_study(), tmp_path / "study", threads=1, train=standin.train)
    assert under_way(store) is None


def test_a_running_study_without_a_checkpoint_has_some_bucket_under_way(tmp_path):
    store = begun(tmp_path / "study", checkpoint=b"")
    for checkpoint in (store.path / "running").glob("*.checkpoint"):
        checkpoint.unlink()
    assert under_way(store) is None
    with held(store.path / "running" / "lock"):
        assert under_way(store) == UnderWay(0)
        assert caution(store).endswith("4 of 16 runs are in; a bucket is under way.")

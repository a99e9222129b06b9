"""Searches on studies in a folder: trained round by round, gone on with, told from others."""

from __future__ import annotations

import itertools
import json
import tomllib
from pathlib import Path

import pytest

from initrate.boundary import (
    HIT,
    MISS,
    ROUNDS,
    SEARCH,
    Search,
    SearchResult,
    begun_rounds,
    draw_picture,
    plan_search,
    run_search,
    search,
    search_folder,
)
from initrate.errors import StoreError
from initrate.files import load_toml
from initrate.study import Store, StudyConfig, run
from initrate.training import (
    Bucket,
    BucketResult,
    Execution,
    Interrupted,
)
from tests.study import standin
from tests.study.conftest import small_study

BOUNDARY = {1: 0.525, 2: 0.675}
"""The stand-in composes above this gamma, by depth."""


def train(bucket: Bucket, execution: Execution, **options) -> BucketResult:
    """The stand-in for the engine, with labels that have a boundary."""
    result = standin.train(bucket, execution, **options)
    place = BOUNDARY[bucket.model.n_layers]
    for lane, told in zip(bucket.lanes, result.lanes, strict=True):
        assert isinstance(told.score.scalars, dict)
        composed = standin.N_UNSEEN if (lane.rule.gamma or 0) > place else 0
        told.score.scalars["unseen_composed"] = composed
    return result


def train_round(config: StudyConfig, folder: Path) -> Store:
    return run(config, folder, threads=1, train=train)


@pytest.fixture
def planned() -> Search:
    return plan_search(small_study())


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> SearchResult:
    """A search that is done; tests do not change its folder."""
    return run_search(plan_search(small_study()), tmp_path_factory.mktemp("s") / "x", train_round)


def files(folder: Path) -> dict[str, bytes]:
    """What was trained: all but locks, times and environments."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ("parts" in path.parts or path.name in (SEARCH, "study.toml"))
    }


def test_boundaries_are_found_in_units_of_the_axis(done: SearchResult):
    for found in done.boundaries:
        (crossing,) = found.crossings
        assert crossing.low - 0.025 < BOUNDARY[found.at] < crossing.high + 0.025  # type: ignore[index]
        assert crossing.rises
        assert crossing.high - crossing.low <= done.search.resolution + 1e-9 or not found.resolved


def test_what_was_spent_is_what_lies_in_the_folder(done: SearchResult):
    stores = [Store.open(path) for path, _ in begun_rounds(done.folder, done.search)]
    rows = [row for store in stores for row in store.cells().to_dicts()]
    assert len(rows) == done.cells == (done.labels >= MISS).sum()
    assert sum(row["label"] == "composed" for row in rows) == (done.labels == HIT).sum()
    assert len({row["cell"] for row in rows}) == len(rows)
    assert done.full_grid_cells == 36
    assert 0 < done.operations < done.full_grid_operations
    assert sum(found.cells for found in done.boundaries) == done.cells


def test_the_folder_says_what_is_searched(done: SearchResult):
    table = tomllib.loads((done.folder / SEARCH).read_text())
    assert table == load_toml(done.folder / SEARCH)
    assert (table["axis"], table["by"], table["labels"]) == ("gamma", "depth", ["composed"])
    assert len(table["study"]["axes"]["gamma"]) == 9
    names = sorted(path.name for path in (done.folder / ROUNDS).iterdir())
    assert names[0] == "001-depth-1" and names[-1].endswith("-depth-2")
    assert [int(name[:3]) for name in names] == list(range(1, len(names) + 1))


def test_the_result_is_plain_json(done: SearchResult):
    found = json.loads(json.dumps(done.to_dict(), allow_nan=False))
    assert list(found) == [
        *("schema", "folder", "axis", "by", "label", "resolution", "confidence", "boundaries"),
        *("cells", "full_grid_cells", "operations", "full_grid_operations"),
    ]
    assert found["label"] == "composed"
    assert list(found["boundaries"][0]) == ["depth", "crossings", "resolved"]
    assert list(found["boundaries"][0]["crossings"][0]) == ["estimate", "low", "high", "rises"]


def test_the_same_call_returns_what_is_there(done: SearchResult):
    def refuse(config: StudyConfig, folder: Path) -> Store:
        raise AssertionError("nothing is left to train")

    before = files(done.folder)
    again = run_search(done.search, done.folder, refuse)
    assert again.boundaries == done.boundaries
    assert files(done.folder) == before


def test_interrupted_anywhere_it_goes_on_to_the_same_end(
    planned: Search, done: SearchResult, tmp_path: Path
):
    askings = itertools.count(1)
    n_interrupted, result = 0, None
    while result is None:
        stop_at = next(askings) + 3

        def stopping(
            config: StudyConfig, folder: Path, stop_at: int = stop_at, local=askings
        ) -> Store:
            asked = lambda: next(local) >= stop_at  # noqa: E731
            return run(config, folder, threads=1, train=train, should_stop=asked)

        try:
            result = run_search(planned, tmp_path / "pieces", stopping)
        except Interrupted:
            n_interrupted += 1
    assert n_interrupted > 3
    assert result.boundaries == done.boundaries
    assert files(tmp_path / "pieces") == files(done.folder)


def test_a_start_that_was_cut_off_is_begun_anew(planned: Search, tmp_path: Path):
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / f".{SEARCH}.0123456789abcdef.partial").write_text("axis = ")
    assert run_search(planned, folder, train_round).cells > 0


OTHERS = {
    "another resolution": ({"resolution": 0.1}, "resolution is 0.05 there and 0.1 here"),
    "another label": ({"labels": ["mirrored"]}, "labels is"),
    "another confidence": ({"confidence": 0.8}, "confidence is 0.9 there and 0.8 here"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_a_folder_with_another_search_is_refused(case: str, done: SearchResult):
    given, expected = OTHERS[case]
    before = files(done.folder)
    with pytest.raises(StoreError, match="holds another search") as raised:
        search(small_study(), done.folder, **given)
    assert expected in str(raised.value) and "\n" not in str(raised.value)
    assert files(done.folder) == before


@pytest.mark.parametrize("kind", ["other files", "a file", "a strange round", "a broken search"])
def test_a_folder_of_something_else_is_left_alone(kind: str, planned: Search, tmp_path: Path):
    folder = tmp_path / "s"
    if kind == "a file":
        folder.write_text("mine")
    else:
        folder.mkdir()
        if kind == "other files":
            (folder / "notes.txt").write_text("mine")
        else:
            with pytest.raises(StoreError):
                run_search(planned, folder, lambda config, path: _raise(StoreError("full")))
        if kind == "a strange round":
            (folder / ROUNDS / "mine").mkdir(parents=True)
        if kind == "a broken search":
            (folder / SEARCH).write_text("axis = ")
    with pytest.raises(StoreError, match=r"\A[^\n]+\Z"):
        run_search(planned, folder, train_round)
    assert not list(tmp_path.rglob("parts"))


def _raise(error: Exception) -> Store:
    raise error


def test_a_failed_round_is_told_and_tried_again(planned: Search, tmp_path: Path):
    def failing(bucket: Bucket, execution: Execution, **options) -> BucketResult:
        if bucket.model.n_layers == 2:
            raise RuntimeError("out of memory")
        return train(bucket, execution, **options)

    def train_failing(config: StudyConfig, folder: Path) -> Store:
        return run(config, folder, threads=1, train=failing, on_error="continue")

    result = run_search(planned, tmp_path / "s", train_failing)
    assert result.n_failed > 0
    assert result.boundaries[0].cells > 0 and result.boundaries[1].cells == 0
    assert not result.boundaries[1].resolved
    again = run_search(planned, tmp_path / "s", train_round)
    assert again.n_failed == 0


def test_readings_are_told_from_the_first_label_on(planned: Search, tmp_path: Path):
    told: list[tuple[object, int]] = []
    run_search(planned, tmp_path / "s", train_round, lambda b: told.append((b.at, b.cells)))
    assert {at for at, _ in told} == {1, 2}
    assert all(cells > 0 for _, cells in told)


def test_searches_have_folders_of_their_own(planned: Search):
    other = plan_search(small_study(), labels=["mirrored"])
    assert search_folder(planned) != search_folder(other)
    assert search_folder(planned).parent == Path("studies")


def test_the_picture_is_the_same_bytes_each_time(done: SearchResult, tmp_path: Path):
    first = draw_picture(done).read_bytes()
    assert draw_picture(done).read_bytes() == first
    assert b"<svg" in first and b"gamma" in first and b"composed" in first

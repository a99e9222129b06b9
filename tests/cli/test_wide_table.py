"""Tables of tensors: whole where there is room, narrowed where a terminal is narrow."""

from __future__ import annotations

import pytest

from initrate.cli._wide_table import print_table

HEAD = ("name", "shape", "role", "std", "reason")
LONG = ("model.layers.*.self_attention.query.weight ×12", "4096 × 4096", "query", "0.125", "")
ROWS = [
    LONG,
    ("model.norm.weight", "4096", "norm", "", "norm is kept"),
]
SPARE = ("shape", "role")


def printed(
    columns: int | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spare: tuple[str, ...] = SPARE,
) -> list[str]:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", str(columns))
    print_table(HEAD, ROWS, spare)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("columns", [None, 120])
def test_where_there_is_room_the_table_is_whole(
    columns: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    text = "\n".join(printed(columns, monkeypatch, capsys))
    assert all(entry in text for row in ROWS for entry in row)
    assert "Left out" not in text and "begin with" not in text


@pytest.mark.parametrize(
    ("columns", "left_out"),
    [(94, []), (80, ["shape"]), (66, ["shape", "role"]), (50, ["shape", "role"])],
)
def test_a_narrow_terminal_has_lines_that_fit(
    columns: int,
    left_out: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    lines = printed(columns, monkeypatch, capsys)
    assert max(map(len, lines)) <= columns
    text = " ".join(" ".join(lines).split())
    assert "All names begin with model." in text
    assert ("Left out for want of width: " + ", ".join(left_out) in text) == bool(left_out)
    assert all((name in lines[1].split()) != (name in left_out) for name in HEAD)
    # A name is broken at its dots alone.
    assert "self_attention.query." in text


def test_without_columns_to_spare_the_table_is_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert LONG[0] in "\n".join(printed(50, monkeypatch, capsys, spare=()))

"""Reading what others may have written: bounded, checked, one line of complaint."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from initrate.errors import InputError, StoreError
from initrate.files import (
    NESTING_LIMIT,
    inside,
    load_json,
    load_toml,
    read_bounded,
    sha256_file,
    shown,
)


def complaint(caught: pytest.ExceptionInfo[InputError]) -> str:
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_bytes_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_bounded(path, 5) == b"12345"
    with pytest.raises(InputError) as caught:
        read_bounded(path, 4)
    assert complaint(caught) == f"{path} is larger than 4 bytes: expected a smaller file"


def test_checksum(tmp_path: Path) -> None:
    data = os.urandom(300_000)
    (tmp_path / "file").write_bytes(data)
    assert sha256_file(tmp_path / "file") == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("read", [lambda path: read_bounded(path, 10), sha256_file])
def test_what_is_not_a_plain_file_is_not_opened(tmp_path: Path, read) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    for path, message in [
        (tmp_path / "missing", "cannot read .*missing: No such file or directory"),
        (tmp_path, "is a folder: expected a file"),
        (tmp_path / "pipe", "is not a plain file: expected a file on a disk"),
        (tmp_path / "file" / "x", "cannot read .*: Not a directory"),
        (Path("a\0b"), "cannot read .*null"),
    ]:
        with pytest.raises(InputError, match=message) as caught:
            read(path)
        complaint(caught)


@pytest.mark.parametrize(
    "name", ["cells.parquet", "parts/0/cells.parquet", "a b/γ", "..x", "a/./b"]
)
def test_names_inside(tmp_path: Path, name: str) -> None:
    assert inside(tmp_path, name) == tmp_path / name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/../../x", "a/..", "/etc/passwd", "//x", "a\\b", "a\0b"]
)
def test_names_that_lead_out(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="the path ") as caught:
        inside(tmp_path, name)
    complaint(caught)


def test_links_that_lead_out(tmp_path: Path) -> None:
    root = tmp_path / "study"
    root.mkdir()
    (tmp_path / "secret").touch()
    (root / "real").mkdir()
    (root / "out").symlink_to(tmp_path)
    (root / "file").symlink_to(tmp_path / "secret")
    (root / "in").symlink_to(root / "real")
    (root / "loop").symlink_to(root / "loop")
    assert inside(root, "in/x") == root / "in" / "x"
    for name in ("out", "out/secret", "file"):
        with pytest.raises(StoreError, match=r"leads out of .* through a link"):
            inside(root, name)
    with pytest.raises(StoreError, match="the path 'loop/x' "):
        inside(root, "loop/x")


def test_a_root_that_is_a_link_or_relative_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert inside(tmp_path / "link", "x") == tmp_path / "link" / "x"
    monkeypatch.chdir(tmp_path)
    assert inside(Path("real"), "x") == Path("real/x")


def test_names_that_are_not_text(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="the path 3 is not text"):
        inside(tmp_path, 3)  # pyright: ignore[reportArgumentType]


def test_toml_and_json_from_text_and_file(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('name = "γ"\n[axes]\ngamma = [0.3, 0.5]\n', encoding="utf-8")
    (tmp_path / "a.json").write_text('{"schema": 1, "γ": [0.5, null]}', encoding="utf-8")
    assert load_toml(tmp_path / "a.toml") == {"name": "γ", "axes": {"gamma": [0.3, 0.5]}}
    assert load_json(tmp_path / "a.json") == {"schema": 1, "γ": [0.5, None]}
    assert load_toml("a.b = 1") == {"a": {"b": 1}}
    assert load_json("[1]") == [1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1\nb = = 2\n", r"not TOML: Invalid value \(at line 2, column 5\)"),
        ("a = 1\na = 2\n", r"not TOML: Cannot overwrite a value .*line 2"),
        ("a = 2020-13-40", "not TOML: "),
        ("a = " + "1" * 5000, "not TOML: "),
        ("a = 1", "larger than 4 bytes"),
    ],
)
def test_bad_toml(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_toml(text, 4 if "larger" in message else 10_000)
    complaint(caught)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n "b" 2}', "not JSON: line 2: Expecting ':' delimiter"),
        ('{"a": 1, "a": 2}', "not JSON: the key 'a' is given twice"),
        ('{"a": NaN}', "not JSON: NaN is no JSON number"),
        ('{"a": -Infinity}', "not JSON: -Infinity is no JSON number"),
        ("1" * 5000, "not JSON: "),
        ('"\\ud800"', r"half a character: '\\ud800'"),
        ('{"\\udc00x": 1}', "half a character"),
        ("", "not JSON: line 1"),
        ("[1, 2, 3]", "larger than 4 bytes"),
    ],
)
def test_bad_json(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_json(text, 4 if "larger" in message else 10_000)
    complaint(caught)


@pytest.mark.parametrize("load", [load_toml, load_json])
def test_files_that_are_not_text(tmp_path: Path, load) -> None:
    (tmp_path / "file").write_bytes(b"ab\xff")
    with pytest.raises(InputError, match="is not text in UTF-8: byte 2") as caught:
        load(tmp_path / "file")
    assert str(tmp_path / "file") in complaint(caught)


def nested_json(depth: int) -> str:
    return '{"a": ' + "[" * (depth - 1) + "1" + "]" * (depth - 1) + "}"


def nested_toml(depth: int) -> str:
    return "a = " + "[" * (depth - 1) + "1" + "]" * (depth - 1)


@pytest.mark.parametrize(("load", "nested"), [(load_json, nested_json), (load_toml, nested_toml)])
@pytest.mark.parametrize("depth", [NESTING_LIMIT + 1, 500, 5_000, 400_000])
def test_nesting_is_bounded(load, nested, depth: int) -> None:
    assert load(nested(NESTING_LIMIT))
    with pytest.raises(InputError, match=f"nested more than {NESTING_LIMIT} deep") as caught:
        load(nested(depth))
    complaint(caught)


@pytest.mark.parametrize(
    "text",
    [
        "ok = 1\n" + "a." * 100_000 + "a = 1",
        "ok = 1\n[" + "a ." * 100_000 + "a]",
        "ok = 1\n" + '"a b".' * 100_000 + "a = 1",
        "ok = 1\n" + "'x\"'." * 100_000 + "a = 1",
        "ok = 1\n" + '"\\"".' * 100_000 + "a = 1",
        "ok = 1\nx = { " + "a." * 100_000 + "a = 1 }",
    ],
)
def test_a_key_of_many_parts_takes_neither_time_nor_memory(text: str) -> None:
    start = time.process_time()
    with pytest.raises(InputError, match="line 2 has a key of more than 32 parts"):
        load_toml(text)
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    "text", ['x = "' + "a" * 200_000 + '"', "x = [" + "0.125, " * 20_000 + "]", "# " + ".x" * 9]
)
def test_long_lines_that_are_no_long_keys_are_read(text: str) -> None:
    assert len(load_toml(text)) == (0 if text.startswith("#") else 1)


def test_paths_in_messages_are_one_line() -> None:
    assert shown(Path("a b/γ")) == "a b/γ"
    assert shown("a\nb") == "'a\\nb'"
    assert shown("") == "''"

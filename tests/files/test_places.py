"""What lies in a place: links are called links, pipes are not waited for, names are told apart."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from initrate.errors import InputError, StoreError
from initrate.files import (
    check_plain,
    leftovers,
    leftovers_of,
    load_json,
    load_toml,
    make_folder,
    place_words,
    read_bounded,
    sha256_file,
)

HEX = "0123456789abcdef"

KINDS: list[tuple[str, Callable[[Path], object], str]] = [
    ("folder", Path.mkdir, "is a folder"),
    ("pipe", os.mkfifo, "is not a plain file"),
    ("device", lambda p: p.symlink_to("/dev/zero"), "is not a plain file"),
    ("dangling", lambda p: p.symlink_to(p.parent / "nowhere"), "is a link to nothing"),
    ("loop", lambda p: p.symlink_to(p), "symbolic links|link"),
]


@pytest.mark.parametrize(("name", "make", "says"), KINDS, ids=[kind[0] for kind in KINDS])
def test_what_is_no_plain_file_is_not_read(
    name: str, make: Callable[[Path], object], says: str, tmp_path: Path
) -> None:
    place = tmp_path / name
    make(place)
    for read in (
        check_plain,
        sha256_file,
        load_toml,
        load_json,
        lambda path: read_bounded(path, 10),
    ):
        with pytest.raises(InputError, match=says) as caught:
            read(place)
        assert "\n" not in str(caught.value)


def test_a_link_to_a_file_is_followed_unless_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a = 1")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert load_toml(tmp_path / "link") == {"a": 1}
    with pytest.raises(InputError, match="link is a link: expected a plain file"):
        load_toml(tmp_path / "link", links=False)
    assert load_toml(tmp_path / "file", links=False) == {"a": 1}


def test_places_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    found = [place_words(tmp_path / name) for name in ("file", "dangling", "loop")]
    assert found == ["a file", "a link to nothing", "a loop of links"]
    with pytest.raises(FileNotFoundError):
        place_words(tmp_path / "nothing")
    for name in ("dangling", "loop"):
        with pytest.raises(StoreError, match=r"is a (link to nothing|loop of links)"):
            make_folder(tmp_path / name)


def test_leftovers_are_known_by_the_whole_of_their_names(tmp_path: Path) -> None:
    ours = [f".a.{HEX}.partial", f".b.c.{HEX[::-1]}.partial"]
    mine = [".a.partial", f".{HEX}.partial", f"a.{HEX}.partial", f".a.{HEX.upper()}.partial"]
    mine += [f".a.{HEX}.partial.bak", f".a.{HEX[1:]}.partial"]
    for name in (*ours, *mine):
        (tmp_path / name).touch()
    (tmp_path / f".d.{HEX}.partial").symlink_to(tmp_path / mine[0])
    assert [path.name for path in leftovers(tmp_path)] == sorted(ours)
    assert [path.name for path in leftovers_of(tmp_path / "a")] == [ours[0]]
    assert leftovers_of(tmp_path / "b") == []


@pytest.mark.parametrize("read", [load_toml, load_json])
def test_a_number_of_very_many_digits_gives_no_advice_to_programmers(
    read: Callable[[str], object],
) -> None:
    text = "9" * 5000
    with pytest.raises(InputError, match="a number has too many digits") as caught:
        read(f"a = {text}" if read is load_toml else f'{{"a": {text}}}')
    assert "set_int" not in str(caught.value)

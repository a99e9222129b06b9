"""Files: whole writes, bounded reads, safe paths, TOML and JSON. Standard library alone."""

from initrate.files._messages import place_words, refused, shown
from initrate.files._read import (
    NESTING_LIMIT,
    TEXT_LIMIT,
    check_plain,
    inside,
    load_json,
    load_toml,
    read_bounded,
    sha256_file,
)
from initrate.files._toml import dotted, dump_toml
from initrate.files._write import (
    TEMPORARY_SUFFIX,
    leftovers,
    leftovers_of,
    make_folder,
    write_new_folder,
    write_whole,
)

__all__ = [
    "NESTING_LIMIT",
    "TEMPORARY_SUFFIX",
    "TEXT_LIMIT",
    "check_plain",
    "dotted",
    "dump_toml",
    "inside",
    "leftovers",
    "leftovers_of",
    "load_json",
    "load_toml",
    "make_folder",
    "place_words",
    "read_bounded",
    "refused",
    "sha256_file",
    "shown",
    "write_new_folder",
    "write_whole",
]

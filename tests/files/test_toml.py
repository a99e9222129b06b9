"""TOML text: what is written reads back equal; what cannot be written is refused."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from initrate.errors import InputError
from initrate.files import dump_toml

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
plain = texts | st.integers() | st.floats(allow_nan=False) | st.booleans()
lists = st.recursive(
    st.lists(plain, max_size=4),
    lambda inner: st.lists(inner | plain | st.dictionaries(texts, plain, max_size=3), max_size=4),
    max_leaves=8,
)
tables = st.recursive(
    st.dictionaries(texts, plain | lists, max_size=5),
    lambda inner: st.dictionaries(texts, plain | lists | inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=80, deadline=None)
@given(tables)
def test_reads_back_equal(table: dict) -> None:
    found = tomllib.loads(dump_toml(table))
    assert found == table
    assert repr(sorted_deeply(found)) == repr(sorted_deeply(table))


def sorted_deeply(found: object) -> object:
    """The value without the order of keys; its repr tells 1 from 1.0 and from True."""
    if isinstance(found, Mapping):
        return sorted((key, sorted_deeply(x)) for key, x in found.items())
    return [sorted_deeply(x) for x in found] if isinstance(found, list) else found


@given(st.floats())
def test_floats_read_back_to_the_last_bit(number: float) -> None:
    found = tomllib.loads(dump_toml({"x": number}))["x"]
    assert repr(found) == repr(number)


def test_the_text_is_as_a_person_would_write_it() -> None:
    study = {
        "schema": 1,
        "task": {"variant": "34-wrong", "unseen": [[4, 3], [1, 2]]},
        "training": {"lr": 1e-3, "clip_norm": None, "decay_schedule": {"window": [0, 200]}},
        "name": "laptop",
        "notes": [{"γ": 0.5}],
    }
    assert dump_toml(study) == (
        'schema = 1\nname = "laptop"\nnotes = [{ "γ" = 0.5 }]\n'
        '\n[task]\nvariant = "34-wrong"\nunseen = [[4, 3], [1, 2]]\n'
        "\n[training]\nlr = 0.001\n\n[training.decay_schedule]\nwindow = [0, 200]\n"
    )


def test_none_is_left_out_and_empty_tables_stay() -> None:
    assert tomllib.loads(dump_toml({"a": None, "b": {}, "c": [{"d": None}]})) == {
        "b": {},
        "c": [{}],
    }
    assert dump_toml({}) == dump_toml({"a": None}) == ""


def test_tuples_and_numpy_numbers_are_plain() -> None:
    found = tomllib.loads(dump_toml({"a": (1, (2.5,)), "b": np.int64(3), "c": np.float64(0.1)}))
    assert found == {"a": [1, [2.5]], "b": 3, "c": 0.1}


def test_infinity_and_nan_have_their_words() -> None:
    found = tomllib.loads(dump_toml({"a": math.inf, "b": -math.inf, "c": math.nan}))
    assert found["a"] == math.inf and found["b"] == -math.inf and math.isnan(found["c"])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"task": {"maps": {3: 5}}}, r"TOML key 3 under 'task.maps': expected text"),
        ({3: 5}, "TOML key 3 at the top: expected text"),
        ({"a": [{3: 5}]}, "TOML key 3 under 'a': expected text"),
        ({"a": {"b": object()}}, r"TOML cannot hold <object .*> under 'a.b'"),
        ({"a": [1, None]}, "TOML cannot hold None under 'a'"),
        ({"a": np.zeros((2, 2))}, "TOML cannot hold array"),
        ({"a": b"x"}, "TOML cannot hold b'x' under 'a'"),
        ({"a": {1, 2}}, "TOML cannot hold {1, 2} under 'a'"),
        ({"a": "\ud800"}, r"half of a character U\+D800"),
    ],
)
def test_what_toml_cannot_hold(table: dict, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        dump_toml(table)
    assert "\n" not in str(caught.value)

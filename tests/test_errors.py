"""Errors of bad input: their kin and the nearest valid name."""

from __future__ import annotations

import pytest

from initrate.errors import InputError, StoreError, unknown


def test_kin() -> None:
    assert issubclass(InputError, ValueError)
    assert issubclass(StoreError, InputError)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("formla", "unknown rule 'formla': did you mean 'formula'? known: formula, gpt2"),
        ("gpt", "unknown rule 'gpt': did you mean 'gpt2'? known: formula, gpt2"),
        ("zzz", "unknown rule 'zzz': known: formula, gpt2"),
        ("", "unknown rule '': known: formula, gpt2"),
        (3, "unknown rule '3': known: formula, gpt2"),
        ("a\nb", "unknown rule 'a\\nb': known: formula, gpt2"),
    ],
)
def test_unknown_names_the_nearest(name: object, message: str) -> None:
    error = unknown("rule", name, ["formula", "gpt2"])
    assert isinstance(error, InputError)
    assert str(error) == message


def test_any_iterable_of_names_will_do() -> None:
    assert str(unknown("x", "b", {"a": 1}.keys())) == "unknown x 'b': known: a"
    assert str(unknown("x", "b", iter(["a"]))) == "unknown x 'b': known: a"

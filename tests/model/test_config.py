"""The shape of a decoder: named shapes and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from initrate.errors import InputError
from initrate.model import ModelConfig, n_parameters, shape


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_layers": 0}, "n_layers is 0"),
        ({"d_model": 64.0}, r"d_model is 64\.0"),
        ({"d_ff": True}, "d_ff is True"),
        ({"n_layers": 10**26}, "n_layers is beyond all bounds"),
        ({"d_model": 10**7}, "from 1 to 1,000,000"),
        ({"norm": "layer"}, "did you mean 'layernorm'"),
        ({"activation": "relo"}, "did you mean 'relu'"),
        ({"norm_eps": 0.0}, "norm_eps"),
        ({"norm_eps": "1e-5"}, "norm_eps"),
        ({"tied": "yes"}, "tied"),
        ({"positions": "rotary", "d_k": 5}, "even d_k"),
    ],
)
def test_a_bad_field_is_named(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        replace(ModelConfig(), **changes)
    assert "\n" not in str(caught.value)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'laptop'"):
        shape("laptp")
    with pytest.raises(InputError, match="did you mean 'n_layers'"):
        shape("laptop", n_layer=3)


@pytest.mark.parametrize(
    ("n_layers", "millions"), [(2, 2.73), (3, 4.01), (4, 5.30), (5, 6.58), (6, 7.86), (7, 9.14)]
)
def test_the_papers_model_has_its_number_of_parameters(n_layers: int, millions: float) -> None:
    """arXiv 2405.05409, Appendix A: the numbers follow from its sizes, vocabulary 201."""
    found = n_parameters(shape("paper-2405.05409", n_layers=n_layers), 201)
    assert found / 1e6 == pytest.approx(millions, abs=0.005)

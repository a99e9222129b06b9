"""What cannot be written is refused by name, before any value is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from initrate.errors import InputError
from initrate.frameworks.torch import apply


def state(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(
        torch.equal(tensor, second[name]) for name, tensor in first.items()
    )


class Unknown(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.strange = nn.Parameter(torch.ones(3, 3))


def lazy() -> nn.Module:
    return nn.LazyLinear(4)


def of_inference_mode() -> nn.Module:
    with torch.inference_mode():
        return nn.Linear(4, 4)


def expanded() -> nn.Module:
    module = nn.Linear(4, 4)
    module.weight = nn.Parameter(torch.ones(4, 1).expand(4, 4))
    return module


def folded() -> nn.Module:
    module = nn.Linear(4, 4)
    module.weight = nn.Parameter(torch.ones(8).as_strided((4, 4), (1, 1)))
    return module


def overlapping() -> nn.Module:
    both, module = torch.zeros(6, 4), nn.ModuleDict()
    module["q_proj"], module["k_proj"] = nn.Linear(4, 4), nn.Linear(4, 4)
    module["q_proj"].weight = nn.Parameter(both[:4])
    module["k_proj"].weight = nn.Parameter(both[2:])
    return module


def sparse() -> nn.Module:
    module = nn.Linear(4, 4)
    module.weight = nn.Parameter(torch.eye(4).to_sparse())
    return module


def of_8_bits() -> nn.Module:
    module = nn.Linear(4, 4)
    module.weight = nn.Parameter(torch.ones(4, 4).to(torch.float8_e4m3fn))
    return module


REFUSED: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "unknown": (Unknown, r"'1\.strange'"),
    "lazy": (lazy, r"'1\.weight' has no shape yet"),
    "read-only": (of_inference_mode, r"'1\.weight' is read-only"),
    "expanded": (expanded, r"'1\.weight' holds one value at several places"),
    "folded": (folded, r"'1\.weight' holds one value at several places"),
    "overlapping": (overlapping, "overlapping"),
    "sparse": (sparse, r"'1\.weight'"),
    "8 bits": (of_8_bits, r"'1\.weight' holds torch\.float8_e4m3fn"),
    "meta": (lambda: nn.Linear(4, 4, device="meta"), r"'1\.weight' is on the meta device"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_one_tensor_that_is_refused_leaves_all_others_as_they_are(name: str) -> None:
    build, text = REFUSED[name]
    first = nn.Linear(8, 8)
    model = nn.Sequential(first, build())
    before, version = state(first), first.weight._version
    with pytest.raises(InputError, match=text):
        apply(model, gamma=0.8)
    assert equal(state(first), before) and first.weight._version == version


@pytest.mark.parametrize(
    ("dtype", "gamma", "fits"),
    [
        (torch.float16, 0.8, True),
        (torch.float16, 2.5, False),
        (torch.float16, -3.0, False),
        (torch.bfloat16, 2.5, True),
        (torch.bfloat16, 0.8, True),
        (torch.float32, 2.5, True),
        (torch.float64, 2.5, True),
    ],
)
def test_a_std_that_the_type_cannot_hold_is_refused(
    dtype: torch.dtype, gamma: float, fits: bool
) -> None:
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64, dtype=dtype))
    before = state(model)
    if fits:
        # The check of eps and the like is of no concern here: the values alone are.
        apply(model, gamma=gamma)
        found = float(model[1].weight.detach().double().square().mean().sqrt())  # pyright: ignore[reportCallIssue]
        assert found == pytest.approx(64**-gamma, rel=0.06)
        return
    with pytest.raises(InputError, match=rf"'1\.weight' would be drawn with std .* {dtype}"):
        apply(model, gamma=gamma)
    assert equal(state(model), before)


@pytest.mark.parametrize(
    "weight",
    [torch.eye(4).to_sparse(), torch.eye(4).to(torch.complex64), torch.ones(4, 4).to(torch.int8)],
    ids=["sparse", "complex", "integers"],
)
def test_what_is_left_out_need_not_be_of_real_numbers(weight: torch.Tensor) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(4, 4, bias=False))
    floating = weight.dtype.is_floating_point
    model[1].weight = nn.Parameter(weight, requires_grad=floating)
    audit = apply(model, gamma=0.8, exclude="1.*")
    assert audit.ok and [row.name for row in audit.rows] == ["0.weight", "0.bias"]

from __future__ import annotations

from collections.abc import Mapping

import pytest

from initrate.tasks import TASKS, AnchorTask, variant


def _wrap(x: int) -> int:
    return 20 + (3 * (x - 20) + 7) % 80


CHANGED: Mapping[str, AnchorTask] = {
    "paper modulus": variant("34-wrong", split_modulus="paper", vocabulary=201),
    "other modulus": variant("without-34", split_modulus=11),
    "five groups": variant("random-groups", random_groups=5),
    "no noise": variant("without-34", noise=False),
    "three in a row": AnchorTask(
        variant="three",
        n_anchors=3,
        key_low=30,
        unseen=((4, 3, 1), (1, 3, 4)),
        overrides={"2,3,4": -3},
    ),
    "one anchor": AnchorTask(variant="one", n_anchors=1, unseen=((2,),), overrides=()),
    "two anchors only": AnchorTask(
        variant="two", anchors=(7, 3), maps=(2, -2), unseen=(), overrides=(), length=5
    ),
    "permutation": AnchorTask(
        variant="permutation",
        anchors=(0, 1),
        maps=(_wrap, lambda x: 119 - x),
        unseen=((0, 1),),
        overrides={},
        length=6,
    ),
    "table override": AnchorTask(
        variant="tables", overrides={(3, 4): {x: 119 - x for x in range(20, 100)}}
    ),
    "other ranges": variant(
        "34-wrong+probe", key_low=30, key_high=60, noise_low=40, noise_high=41, length=7
    ),
    "small pool": variant("34-wrong", pool=1000),
}
ALL: Mapping[str, AnchorTask] = {name: variant(name) for name in TASKS} | CHANGED


@pytest.fixture(params=ALL, ids=str)
def task(request: pytest.FixtureRequest) -> AnchorTask:
    """Every built-in variant, and tasks that use every option."""
    return ALL[request.param]

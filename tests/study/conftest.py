"""A small study, and its folder as the stand-in for the engine leaves it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from initrate.model import ModelConfig
from initrate.study import Store, StudyConfig, run
from initrate.tasks import variant
from initrate.training import Training
from tests.study import standin


def small_study() -> StudyConfig:
    """Return a study of 4 buckets: 4 gammas in each, 2 depths, 2 seeds."""
    return StudyConfig(
        name="small",
        task=variant("34-wrong"),
        model=ModelConfig(n_layers=1, d_model=8, d_k=4, d_v=4, d_ff=8),
        training=Training(steps=20, batch=8, log_every=5, warmup_steps=2),
        axes={"gamma": (0.4, 0.5, 0.6, 0.8), "depth": (1, 2)},
        seeds=(1, 2),
    )


@pytest.fixture
def config() -> StudyConfig:
    """Return the small study."""
    return small_study()


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the small study, trained; it is for copying alone."""
    folder = tmp_path_factory.mktemp("study") / "small"
    run(small_study(), folder, threads=2, train=standin.train)
    return folder


@pytest.fixture
def store(trained_once: Path, tmp_path: Path) -> Store:
    """Return a copy of the trained small study that a test may spoil."""
    return Store.open(shutil.copytree(trained_once, tmp_path / "small"))

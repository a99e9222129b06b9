"""The demo: a small trained study that ships with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initrate.study import Store, StudyConfig

FOLDER = Path(__file__).parent / "study"


def open_demo() -> Store:
    """Return the store of the demo study: two cells of the laptop shape, at γ 0.6 and 0.8."""
    from initrate.study import Store

    return Store.open(FOLDER)


def demo_config() -> StudyConfig:
    """Return the study that the demo is: what `python -m initrate.report.demo DIR` trains."""
    from initrate.study import load_study

    return load_study(Path(__file__).parent / "demo.toml")

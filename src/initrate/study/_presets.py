"""Presets: study files that come with the package."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from initrate.errors import unknown
from initrate.study._config import StudyConfig
from initrate.study._toml import config_digest, load_study

PRESETS: dict[str, str] = {
    "smoke": "two cells in a few seconds: shows that all is installed, and nothing else",
    "laptop": "without-34 at small size, gamma by depth, minutes on two cores: a demonstration "
    "chosen because it shows the regimes, never evidence for a claim",
    "laptop-34-wrong": "34-wrong with the probe at small size, by gamma: shows the mirrored answer "
    "too; a demonstration, never evidence for a claim",
    "lr-wd": "learning rate by weight decay at gamma 0.5, 3 layers, without-34, at small size; a "
    "demonstration, never evidence for a claim",
    "paper": "the phase diagram of arXiv 2405.05409 (Fig. 2): gamma by depth, 34-wrong, best of "
    "nine learning rates, 77,700 steps; for GPUs",
    "paper-lr-wd": "the learning-rate by weight-decay map of arXiv 2405.05409 (Fig. 14): gamma "
    "0.5, 3 layers, without-34; for GPUs",
}
"""The presets: name and a line on each."""


HOME = Path("studies")
"""Where studies go that are given no folder."""


def preset(name: str) -> StudyConfig:
    """Return the study of a preset; `override` and `dataclasses.replace` change it.

    >>> preset("paper").training.steps
    77700
    """
    return load_study(preset_text(name))


def default_folder(config: StudyConfig) -> Path:
    """Return the folder of a study that is given none; a changed preset has one of its own.

    >>> default_folder(preset("laptop"))
    PosixPath('studies/laptop')
    """
    found = config_digest(config)
    name = "".join(c if c.isalnum() or c in "-_+." else "-" for c in config.name).lstrip(".")
    same = config.name in PRESETS and found == config_digest(preset(config.name))
    return HOME / (name if same else f"{name or 'study'}-{found[:6]}")


def preset_text(name: str) -> str:
    """Return the study file of a preset, as it is written.

    >>> preset_text("smoke").splitlines()[0]
    'schema = 1'
    """
    if not isinstance(name, str) or name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    file = resources.files("initrate.study") / "presets" / f"{name}.toml"
    return file.read_text(encoding="utf-8")

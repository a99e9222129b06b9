"""What a study was made from: a preset as it is, or one that was changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from initrate.study import StudyConfig

_SECTIONS = ("task", "model", "rule", "training")
_MOST_FIELDS = 3
"""Of a section with more changed fields than this, the section is named alone."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The preset whose description a study carries, and what the study has changed of it."""

    name: str
    changed: tuple[str, ...]
    """Names of fields, axes or sections; fewer seeds or values of an axis are no change."""
    demonstration: bool
    """Whether the preset says of itself that it is no more than one."""

    @property
    def words(self) -> str:
        """What was changed, in one sentence; empty where nothing was."""
        if not self.changed:
            return ""
        return f"Changed from the preset {self.name}: {', '.join(self.changed)}."


def origin_of(config: StudyConfig) -> Origin | None:
    """Return where a study comes from, by the description it carries; None for one of its own.

    >>> from initrate.study import override, preset
    >>> origin_of(preset("laptop"))
    Origin(name='laptop', changed=(), demonstration=True)
    >>> origin_of(override(preset("laptop"), {"steps": 20})).words
    'Changed from the preset laptop: steps.'
    """
    from initrate.report.demo import demo_config
    from initrate.study import PRESETS, preset

    if not config.description:
        return None
    for name in (*PRESETS, "demo"):
        known = demo_config() if name == "demo" else preset(name)
        if known.description == config.description:
            demonstration = "demonstration" in known.description.lower()
            return Origin(name, _changes(known, config), demonstration)
    return None


def _changes(known: StudyConfig, config: StudyConfig) -> tuple[str, ...]:
    from initrate.study import axis_path, config_to_dict

    there, here = config_to_dict(known), config_to_dict(config)
    paths = {axis_path(name): name for name in (*known.axes, *config.axes)}
    changed: list[str] = []
    for section in _SECTIONS:
        fields = [
            path.partition(".")[2]
            for path in _differing(there[section], here[section], f"{section}.")
            if path not in paths
        ]
        whole = section == "task" or len(fields) > _MOST_FIELDS
        changed += [section] if whole and fields else [_words(section, field) for field in fields]
    changed += [name for path, name in paths.items() if _is_off(known, config, path, name)]
    if (known.protocol, known.lrs) != (config.protocol, config.lrs):
        changed.append("learning rates")
    return tuple(dict.fromkeys(changed))


def _is_off(known: StudyConfig, config: StudyConfig, path: str, name: str) -> bool:
    """Whether a study takes values on an axis that the preset does not take there."""
    wanted = known.axes.get(name) or (_field(known, path),)
    taken = config.axes.get(name) or (_field(config, path),)
    return any(found not in wanted for found in taken)


def _field(config: StudyConfig, path: str) -> object:
    from initrate.study import config_to_dict

    return _leaves(config_to_dict(config)).get(path)


def _differing(there: object, here: object, prefix: str) -> list[str]:
    old, new = _leaves(there, prefix), _leaves(here, prefix)
    return [path for path in {**old, **new} if old.get(path) != new.get(path)]


def _leaves(table: object, prefix: str = "") -> dict[str, object]:
    leaves: dict[str, object] = {}
    for key, entry in cast("Mapping[str, object]", table).items():
        if isinstance(entry, Mapping):
            leaves |= _leaves(entry, f"{prefix}{key}.")
        else:
            leaves[prefix + key] = entry
    return leaves


def _words(section: str, field: str) -> str:
    from initrate.report._words import axis_words

    return section if field == "name" else axis_words(field)[0]

"""The model of a config.json, built on the meta device: names, shapes and roles, no memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from initrate.errors import InputError, unknown
from initrate.files import load_json, shown
from initrate.frameworks._needs import needed
from initrate.frameworks._reading import told
from initrate.rule import Rule, WeightRecord

_MOST_LAYERS = 2_000
_BOUNDS = (
    (re.compile(r"(layers?|experts|blocks|depths?|stages)$|^n_layer$"), _MOST_LAYERS),
    (re.compile(r"position|^n_ctx$|_length$"), 2**25),
)
"""What is built as often as a config says, and tables that some models make with NumPy."""


@dataclass(frozen=True, slots=True)
class ConfigModel:
    """A model without values."""

    path: Path
    model: Any
    records: tuple[WeightRecord, ...]
    multipliers: Mapping[str, float]
    """Tables that are multiplied when they are looked up."""

    def written_rule(self) -> Rule | None:
        """Return the rule that apply has written into the config, or None."""
        if getattr(self.model.config, "initrate", None) is None:
            return None
        from initrate.frameworks.huggingface import rule_of

        found = rule_of(self.model.config)
        return None if found is None else found[0]


def config_notes(path: Path) -> list[str]:
    """Return what is taken for granted where a config names no class of a model."""
    plain = load_json(path)
    if not isinstance(plain, dict) or plain.get("architectures"):
        return []
    return [
        f"{shown(path)} names no architecture: taken as its base model, without a head, such as "
        "the one that gives logits (save the config with its model to have it named)"
    ]


def model_of_config(
    path: Path, *, include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()
) -> ConfigModel:
    """Return the model of a config of Hugging Face; code that comes with it is never run."""
    plain = load_json(path)
    if not isinstance(plain, dict):
        raise InputError(f"{shown(path)} is no config: expected a JSON object")
    model_type = plain.get("model_type")
    if not isinstance(model_type, str):
        raise InputError(f"{shown(path)} has no model_type: expected a config of Hugging Face")
    if "auto_map" in plain:
        raise InputError(
            f"{shown(path)} needs code of its own (auto_map), which is never run here: build the "
            "model yourself and name it as module:function"
        )
    for key, count, most in _counts(plain):
        if count < 0 and most == _MOST_LAYERS:
            raise InputError(f"{shown(path)}: {key} is {count:,}: expected at least 0")
        if count > most:
            raise InputError(f"{shown(path)}: {key} is {count:,}: expected {most:,} at most")
    torch = needed("torch", extra="hf", for_what="a config.json")
    transformers = needed("transformers", extra="hf", for_what="a config.json")
    if model_type not in transformers.CONFIG_MAPPING:
        raise unknown(f"model_type in {shown(path)}", model_type, _near(model_type, transformers))
    try:
        with _quiet(transformers), torch.device("meta"):
            config = transformers.CONFIG_MAPPING[model_type].from_dict(plain)
            model = _class_of(path, config, transformers)(config)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{shown(path)}: the model of type {model_type!r} cannot be built: {told(error)}"
        ) from error
    from initrate.frameworks.torch._multipliers import multipliers
    from initrate.frameworks.torch._walk import walk

    tensors = walk(model, include=include, exclude=exclude)
    records = tuple(record for tensor in tensors for record in tensor.records)
    return ConfigModel(path, model, records, multipliers(tensors))


def _near(model_type: str, transformers: Any) -> list[str]:
    """Return a few of the many known types, those most like what was given."""
    import difflib

    return difflib.get_close_matches(model_type, list(transformers.CONFIG_MAPPING), n=3) or ["gpt2"]


def _counts(plain: Mapping[str, object]) -> Iterator[tuple[str, int, int]]:
    """Yield the numbers of a config that say how often something is built, and their bounds."""
    for key, found in plain.items():
        most = next((most for words, most in _BOUNDS if words.search(key)), None)
        if isinstance(found, Mapping):
            yield from _counts(found)
        elif most is not None:
            several = found if isinstance(found, list) else [found]
            yield from ((key, x, most) for x in several if isinstance(x, int))


def _class_of(path: Path, config: Any, transformers: Any) -> Any:
    """Return what builds the model: the class that the config names, or the bare model's."""
    named = config.architectures
    if not named:
        return transformers.AutoModel.from_config
    found = getattr(transformers, str(named[0]), None)
    if not isinstance(found, type) or not issubclass(found, transformers.PreTrainedModel):
        raise InputError(
            f"{shown(path)} names the architecture {str(named[0])!r}, which transformers "
            f"{transformers.__version__} does not have"
        )
    return found


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Keep the warnings of the library off the terminal: they are about use, not about weights."""
    logging = transformers.utils.logging
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)

"""How often the tracer and the layouts agree on d_in, over the architectures of Hugging Face.

Each architecture is built from its default config on the meta device, with few layers, and run
once; nothing is downloaded.

python -m benchmarks.tracer
python -m benchmarks.tracer gpt2 mixtral
"""

from __future__ import annotations

import inspect
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers
import tyro
from torch import nn

from initrate.errors import InputError
from initrate.frameworks.torch import plan, trace
from initrate.rule import EMBEDDING_ROLES, PlanRow

LAYERS = """
    num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_decoder_layers
    num_encoder_layers depth num_blocks
""".split()
"""Fields of configs that say how many layers there are."""


@dataclass
class Found:
    """What one architecture gave."""

    agree: list[str] = field(default_factory=list)
    disagree: list[str] = field(default_factory=list)
    uncovered: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    trouble: str = ""


def with_few_layers(config: Any, layers: int) -> Any:
    """Return the config, and all configs in it, with at most so many layers."""
    for name in LAYERS:
        before = getattr(config, name, None)
        if isinstance(before, int) and before > layers:
            for key, listed in list(vars(config).items()):
                if isinstance(listed, list) and len(listed) == before:
                    setattr(config, key, listed[:layers])
            setattr(config, name, layers)
    for inner in list(vars(config).values()):
        if isinstance(inner, transformers.PreTrainedConfig):
            with_few_layers(inner, layers)
    return config


def built(model_type: str, layers: int) -> nn.Module:
    """Return a model of this type on the meta device."""
    config = transformers.AutoConfig.for_model(model_type)
    if layers:
        with_few_layers(config, layers)
    with torch.device("meta"):
        try:
            model = transformers.AutoModel.from_config(config, attn_implementation="eager")
        except ValueError:
            model = transformers.AutoModel.from_config(config)
    # Without a loop over the experts that tokens went to, which needs values.
    with suppress(AttributeError, ValueError, KeyError):
        model.set_experts_implementation("batched_mm")
    return model


def _side(config: Any) -> tuple[int, int]:
    side = getattr(config, "image_size", None) or 224
    return (side, side) if isinstance(side, int) else (int(side[0]), int(side[1]))


def examples(model: Any) -> Iterator[dict[str, Any]]:
    """Yield batches that the forward may take, the likelier ones first."""
    config = model.config
    known = inspect.signature(model.forward).parameters
    vision = getattr(config, "vision_config", config)
    audio = getattr(config, "audio_config", config)
    channels = getattr(vision, "num_channels", 3) or 3
    pixels = (1, channels, *_side(vision))
    mels = getattr(audio, "num_mel_bins", None) or getattr(audio, "feature_size", None) or 80
    frames = 2 * (getattr(audio, "max_source_positions", None) or 1500)
    # Real ones: some models look whether the padding is among them.
    ids, audio_samples = torch.full((1, 16), 5), (1, 16000)
    text: dict[str, Any] = {"input_ids": ids}
    if "attention_mask" in known:
        text["attention_mask"] = torch.ones_like(ids)
    if "use_cache" in known:
        text["use_cache"] = False
    if "decoder_input_ids" in known:
        text["decoder_input_ids"] = ids
    both = [
        {"pixel_values": pixels, **text},
        text,
        {"pixel_values": pixels},
        {"pixel_values": (1, 8, *pixels[1:])},
        {"pixel_values": pixels, "pixel_mask": pixels[:1] + pixels[2:]},
        {"input_values": audio_samples},
        {"input_features": (1, mels, frames)},
        {"input_features": (1, mels, frames), "decoder_input_ids": ids},
        {"input_features": (1, 128, mels)},
        {"input_values": (1, 1, 16000)},
        {"input_values": (1, 1024, 128)},
    ]
    fitting = [batch for batch in both if all(name in known for name in batch)]
    needed = {
        name
        for name, parameter in known.items()
        if parameter.default is inspect.Parameter.empty
        and parameter.kind is not inspect.Parameter.VAR_KEYWORD
    }
    yield from [batch for batch in fitting or both if needed <= set(batch)] or fitting or both


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise TimeoutError after so many seconds."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"runs for more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _is_table(row: PlanRow) -> bool:
    return bool(row.record.roles) and set(row.record.roles) <= set(EMBEDDING_ROLES)


def compare(model: nn.Module, batch: dict[str, Any]) -> Found:
    """Return where the trace and the plan of a model agree."""
    found, traced = Found(), trace(model, batch)
    for row in plan(model, gamma=0.8, unknown="keep"):
        if row.action != "draw":
            continue
        uses = traced.uses.get(row.record.name, ())
        kinds = {use.kind for use in uses}
        sizes = {use.d_in for use in uses if use.kind in ("contraction", "table")}
        if not uses:
            found.uncovered.append(row.name)
        elif not sizes or (_is_table(row) and row.d_in not in sizes and "table" not in kinds):
            # A token that is not looked up may be multiplied like an activation.
            found.unclear.append(f"{row.name}: the example {traced.describe(row.record.name)}")
        elif sizes == {row.d_in}:
            found.agree.append(row.name)
        else:
            said = traced.describe(row.record.name)
            found.disagree.append(f"{row.name} {row.record.shape}: d_in {row.d_in}, {said}")
    return found


def look(model_type: str, layers: int, seconds: int) -> Found:
    """Return what one architecture gives, at the batch that covers most."""
    best, troubles = Found(), list[str]()
    try:
        with at_most(seconds):
            model = built(model_type, layers)
    except BaseException as error:  # Whatever a model's own code raises is its trouble.
        if isinstance(error, KeyboardInterrupt):
            raise
        return Found(trouble=f"is not built: {type(error).__name__}: {str(error)[:100]!r}")
    for batch in examples(model):
        try:
            with at_most(seconds):
                found = compare(model, batch)
        except (InputError, TimeoutError) as error:
            troubles.append(f"{list(batch)}: {str(error)[:200]}")
            continue
        if len(found.agree) + len(found.disagree) > len(best.agree) + len(best.disagree):
            best = found
        if len(found.uncovered) < len(found.agree):
            break
    if not best.agree and not best.disagree:
        best.trouble = troubles[0] if troubles else "no product in its forward"
    return best


def main(
    types: tyro.conf.Positional[tuple[str, ...]] = (), *, layers: int = 4, seconds: int = 60
) -> int:
    """Print agreements, disagreements and the uncovered share of architectures.

    Args:
        types: Model types, such as gpt2; all that AutoModel knows if none is given.
        layers: The most layers that a stack gets; 0 leaves the default.
        seconds: The most time for building, and for one batch.
    """
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    names: Sequence[str] = types or tuple(
        transformers.models.auto.modeling_auto.MODEL_MAPPING_NAMES
    )
    total, ran = Found(), 0
    for name in names:
        found = look(name, layers, seconds)
        counts = [len(x) for x in (found.agree, found.disagree, found.unclear, found.uncovered)]
        if found.trouble:
            print(f"{name}: {found.trouble}", flush=True)
            continue
        ran += 1
        print("{}: {} agree, {} disagree, {} unclear, {} uncovered".format(name, *counts))
        for line in found.disagree:
            print(f"  {line}", flush=True)
        for key in ("agree", "disagree", "unclear", "uncovered"):
            getattr(total, key).extend(getattr(found, key))
    every = sum(map(len, (total.agree, total.disagree, total.unclear, total.uncovered))) or 1
    print(f"{ran} of {len(names)} architectures ran: {len(total.agree)} tensors agree,")
    print(f"{len(total.disagree)} disagree, {len(total.unclear)} are used in no product,")
    print(f"{len(total.uncovered)} are not used ({len(total.uncovered) / every:.1%} of {every})")
    return 1 if total.disagree else 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main))

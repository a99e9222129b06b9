"""How much of transformers a plan covers: every architecture that builds from its default config.

Each is built on the meta device, through AutoModel and through the classes with a head, and
planned by a uniform rule and by one that treats roles apart; nothing is downloaded.

python -m benchmarks.coverage --out docs/huggingface-coverage.md
python -m benchmarks.coverage gpt2 mixtral
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers
import tyro
from torch import nn
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from initrate.files import write_whole
from initrate.frameworks.torch import plan
from initrate.rule import Plan, Rule, plan_records

UNIFORM = Rule(gamma=0.8)
BY_ROLE = Rule(gamma=0.8, gamma_by_role={"qk": 0.5}, residual="sqrt_2L")
TASKS = ("AutoModel", "CausalLM", "Seq2SeqLM", "MaskedLM", "SequenceClassification")
SECONDS = 30
"""The longest that one architecture may take to build."""

ACTIONS = ("draw", "zero", "keep", "refuse")


@dataclass(frozen=True, slots=True)
class Counts:
    """What a plan does with an architecture: (tensors, elements) of each action."""

    model_type: str
    by_action: dict[str, tuple[int, int]]
    refused: tuple[tuple[str, str], ...]
    """The names, without the numbers of layers, and the reasons, under the uniform rule."""
    refused_by_role: tuple[tuple[str, str], ...]
    certain: float
    """The share of elements that have one role for certain."""

    @classmethod
    def of(cls, model_type: str, uniform: Plan, by_role: Plan) -> Counts:
        """Return the counts of one architecture from its two plans."""
        total = sum(row.size for row in uniform)
        certain = sum(row.size for row in uniform if len(row.record.roles) == 1)
        return cls(
            model_type,
            {action: uniform.count(action) for action in ACTIONS},
            _reasons(uniform),
            _reasons(by_role),
            certain / total if total else 1.0,
        )


@dataclass(slots=True)
class Covered:
    """What was found through one class of transformers."""

    task: str
    counts: list[Counts] = field(default_factory=list)
    not_built: Counter[str] = field(default_factory=Counter)

    def total(self, action: str) -> tuple[int, int]:
        """Return how many tensors, and how many elements, have this action."""
        found = [counts.by_action[action] for counts in self.counts]
        return sum(tensors for tensors, _ in found), sum(elements for _, elements in found)


def _reasons(found: Plan) -> tuple[tuple[str, str], ...]:
    """Return the refused names, one for all layers, with their reasons."""
    names = {
        (".".join("*" if word.isdigit() else word for word in row.name.split(".")), row.reason)
        for row in found.refused
    }
    return tuple(sorted(names))


class _TooLongError(Exception):
    pass


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def build(task: str, model_type: str) -> nn.Module:
    """Return an architecture from its default config, on the meta device."""
    auto: Any = getattr(transformers, "AutoModel" if task == "AutoModel" else f"AutoModelFor{task}")
    config = CONFIG_MAPPING[model_type]()
    with torch.device("meta"):
        return auto.from_config(config)


def architectures(task: str) -> list[str]:
    """Return the model types that a class of transformers knows."""
    auto: Any = getattr(transformers, "AutoModel" if task == "AutoModel" else f"AutoModelFor{task}")
    known = set(auto._model_mapping.keys())
    return [name for name in CONFIG_MAPPING if CONFIG_MAPPING[name] in known]


def covered(task: str, model_types: Iterable[str]) -> Covered:
    """Return the counts of all of these architectures that can be built."""
    found = Covered(task)
    for i, name in enumerate(model_types, 1):
        started = time.perf_counter()
        try:
            with _within(SECONDS):
                model = build(task, name)
        # A default config may lack what its model needs, in whatever way.
        except Exception as error:
            found.not_built[type(error).__name__.removeprefix("_")] += 1
            continue
        built = time.perf_counter() - started
        uniform = plan(model, rule=UNIFORM)
        by_role = plan_records([row.record for row in uniform], BY_ROLE)
        counts = Counts.of(name, uniform, by_role)
        found.counts.append(counts)
        took = time.perf_counter() - started - built
        print(
            f"{task} {i}: {name}, built in {built:.1f} s, planned in {took:.2f} s", file=sys.stderr
        )
        del model
        if i % 20 == 0:
            gc.collect()
    return found


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.1%})" if whole else "none"


def _summary(found: Sequence[Covered]) -> str:
    head = ("class", "built", "uniform rule", "rule by role", *ACTIONS)
    rows = []
    for each in found:
        built = len(each.counts)
        tried = built + sum(each.not_built.values())
        rows.append(
            (
                each.task,
                f"{built} of {tried}",
                _share(sum(not counts.refused for counts in each.counts), built),
                _share(sum(not counts.refused_by_role for counts in each.counts), built),
                *(f"{n:,} ({size:,})" for n, size in map(each.total, ACTIONS)),
            )
        )
    return _table(head, rows)


def _refusals(found: Sequence[Covered], *, by_role: bool) -> str:
    lines: dict[str, None] = {}
    for each in found:
        for counts in each.counts:
            refused = counts.refused_by_role if by_role else counts.refused
            for name, reason in refused if not by_role else set(refused) - set(counts.refused):
                lines[f"- `{counts.model_type}`: `{name}` {reason}"] = None
    return "\n".join(sorted(lines)) or "None."


def page(found: Sequence[Covered]) -> str:
    """Return the page: the table, what is refused, and a row for each architecture."""
    causes = Counter[str]()
    for each in found:
        causes.update(each.not_built)
    not_built = ", ".join(f"{name} {count}" for name, count in causes.most_common()) or "none"
    rows = [
        (
            f"`{counts.model_type}`",
            sum(n for n, _ in counts.by_action.values()),
            *(f"{counts.by_action[action][0]}" for action in ACTIONS),
            f"{counts.certain:.1%}",
        )
        for counts in found[0].counts
    ]
    return f"""# Coverage of Hugging Face

Every architecture of transformers {transformers.__version__} that builds offline from its default
config, on the meta device, and what a plan does with its parameters. Tied parameters count once,
parts of a fused parameter one by one; elements are in brackets. The page is written by

```sh
python -m benchmarks.coverage --out docs/huggingface-coverage.md
```

*uniform rule* and *rule by role* say how many architectures have no refused tensor: under
`Rule(gamma=0.8)`, which draws a dense map alike whatever its part is, and under
`Rule(gamma=0.8, gamma_by_role={{"qk": 0.5}}, residual="sqrt_2L")`, which must know it. The actions
are those of the uniform rule.

{_summary(found)}

Not built, by the error that their default config gives: {not_built}.

## Refused under the uniform rule

{_refusals(found, by_role=False)}

## Refused under the rule by role alone

{_refusals(found, by_role=True)}

## Architectures through {found[0].task}

Tensors by action, and the share of all elements whose role is one for certain.

{_table(("model type", "tensors", *ACTIONS, "one role"), rows)}
"""


def main(
    model_types: tyro.conf.Positional[tuple[str, ...]] = (),
    /,
    out: Path | None = None,
    task: tuple[str, ...] = TASKS,
) -> int:
    """Print how much of transformers a plan covers.

    Args:
        model_types: Model types, such as gpt2; all that are known unless given.
        out: A file to write the page to, beside printing it.
        task: Classes to build through: AutoModel, or what stands behind AutoModelFor.
    """
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    found = []
    for name in task:
        known = architectures(name)
        found.append(covered(name, [t for t in known if not model_types or t in model_types]))
    text = page(found)
    print(text)
    if out is not None:
        write_whole(out, text.encode())
    return 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main))

"""From a store to what a report is made of: the only file here that knows the store's tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from initrate import __version__
from initrate.errors import InputError
from initrate.report._payload import CURVES
from initrate.report._preset import origin_of
from initrate.report._source import Axis, Pair, Row, SeedPairs, Source
from initrate.report._under_way import under_way
from initrate.report._words import axis_words, count_of, seeds_words, text_of, texts_of

if TYPE_CHECKING:
    from polars import DataFrame

    from initrate.study import Store, StudyConfig
    from initrate.tasks import AnchorTask

_SPLIT = "unseen"
"""Unseen pairs, the probe among them, with training-type keys: what maps and labels are about."""


def read_source(store: Store) -> Source:
    """Return all that a report shows of a study, finished or not."""
    from initrate.study import config_digest, dump_study

    config = store.config
    n_done, n_cells = store.progress()
    tasks = _tasks(config)
    missing: list[str] = []
    crossed = {name: len(found) for name, found in config.seed_axes.items()}
    origin = origin_of(config)
    changed = origin.words if origin else ""
    return Source(
        name=config.name,
        # The description of a preset is none of a study that was changed away from it.
        description="" if changed else config.description,
        axes=tuple(Axis(name, name, tuple(values)) for name, values in config.axes.items()),
        seeds_in_words=seeds_words(len(config.seeds), crossed),
        crossed=crossed,
        seed_columns=_seed_columns(config),
        n_cells=n_cells,
        cells=store.cells().to_dicts() if n_done else (),
        lrs=tuple(config.lrs),
        pairs=_pairs(tasks),
        curves=_with_first_rate(
            _by_cell(store.curves(), ("step", *CURVES)), config.training.lr_start
        )
        if config.training.warmup_steps and "lr_start" not in config.axes
        else _by_cell(store.curves(), ("step", *CURVES)),
        counts=_by_cell(_unseen(store.counts(), by="position"), None),
        shifts=_by_cell(_unseen(store.shifts()), None),
        tensors=_by_cell(store.tensors(), ("role", "tensor", "sigma_sqrt_d")),
        timing=_unless_damaged(lambda: store.timing().to_dicts(), "timing", missing) or (),
        baselines=_baselines(tasks),
        floors=_floors(tasks),
        facts=_facts(config),
        config_text=dump_study(config),
        environment=_environment(
            _unless_damaged(lambda: store.sessions, "environment", missing) or ()
        ),
        execution={
            "threads": store.plan.threads,
            "numbers": store.plan.dtype,
            "device": store.plan.device,
            "buckets": len(store.plan.buckets),
        },
        thresholds=asdict(store.thresholds),
        missing=tuple(missing),
        variant=", ".join(dict.fromkeys(task.variant for task in tasks)),
        seed_pairs=_seed_pairs(store) if n_done else None,
        under_way=under_way(store) if n_done < n_cells else None,
        demonstration=origin is not None and origin.demonstration and not changed,
        changed=changed,
        preset=origin.name if origin else "",
        identity=config_digest(config)[:12],
        version=__version__,
        built=datetime.now(UTC),
    )


def _unless_damaged(
    read: Callable[[], Sequence[Mapping[str, Any]]], what: str, missing: list[str]
) -> Sequence[Mapping[str, Any]] | None:
    """What no result depends on is left out where it is damaged, and the page says so."""
    try:
        return read()
    except (InputError, OSError):
        missing.append(f"The {what} of this study cannot be read; the page does without it.")
        return None


def _with_first_rate(curves: Mapping[str, list[Row]], lr_start: float) -> dict[str, list[Row]]:
    """Before the first update no learning rate is logged: there the warm-up begins."""

    def begun(rows: list[Row]) -> list[Row]:
        first = rows[0]
        if first.get("step") != 0 or first.get("lr") is not None:
            return rows
        return [{**first, "lr": lr_start}, *rows[1:]]

    return {cell: begun(rows) for cell, rows in curves.items()}


def _by_cell(table: DataFrame, columns: Sequence[str] | None) -> dict[str, list[Row]]:
    kept = table if columns is None else table.select("cell", *_present(table, columns))
    rows: dict[str, list[Row]] = {}
    for row in kept.iter_rows(named=True):
        rows.setdefault(row["cell"], []).append(row)
    return rows


def _present(table: DataFrame, columns: Sequence[str]) -> list[str]:
    return [column for column in columns if column in table.columns]


def _unseen(table: DataFrame, *, by: str | None = None) -> DataFrame:
    from polars import col

    kept = table.filter(col("split") == _SPLIT)
    return kept if by is None else kept.filter(col("by") == by)


def _tasks(config: StudyConfig) -> tuple[AnchorTask, ...]:
    """The tasks of a study: one, but where a field of the task is an axis."""
    from initrate.study import axis_path, grid

    if not any(axis_path(name).startswith("task.") for name in config.axes):
        return (config.task,)
    return tuple(dict.fromkeys(point.cell.task for point in grid(config)))


def _pairs(tasks: Sequence[AnchorTask]) -> tuple[Pair, ...]:
    found: dict[str, Pair] = {}
    for task in tasks:
        held_out = (*task.unseen, *task.probe)
        for pair in held_out:
            text = ",".join(map(str, pair))
            mirror = pair[::-1]
            composed = _shift(task, pair)
            mirrored = _shift(task, mirror) if mirror not in held_out else None
            made = Pair(
                text=text,
                split=_SPLIT,
                composed_shift=composed,
                mirrored_shift=None if mirrored == composed else mirrored,
                probe=pair in task.probe,
            )
            found.setdefault(text, made)
    return tuple(found.values())


def _shift(task: AnchorTask, pair: tuple[int, ...]) -> int | None:
    """The answer minus the key, where that is one number for all keys."""
    keys = range(task.key_low, task.key_high + 1)
    shifts = {task.answer(key, pair) - key for key in keys}
    return shifts.pop() if len(shifts) == 1 else None


def _baselines(tasks: Sequence[AnchorTask]) -> list[Row]:
    """One row a baseline, on the primary pair; of several tasks, each named."""
    from initrate.tasks import baselines

    rows: list[Row] = []
    for task in tasks:
        primary = None if task.primary is None else ",".join(map(str, task.primary))
        for row in baselines(task):
            if row["pair"] in (primary, None):
                name = str(row["baseline"]).replace("_", " ")
                if len(tasks) > 1:
                    name = f"{task.variant}: {name}"
                answers = {key: row[key] for key in ("composed", "mirrored", "seen_accuracy")}
                rows.append({"baseline": name, "about": row["description"], **answers})
    return rows


def _floors(tasks: Sequence[AnchorTask]) -> Mapping[str, float]:
    """The floors of the loss; of several tasks none, since one line would not say whose."""
    from initrate.tasks import loss_floors

    return loss_floors(tasks[0]) if len(tasks) == 1 else {}


def _seed_pairs(store: Store) -> SeedPairs | None:
    """How often another seed changes the label: the part of an agreement within one study."""
    from initrate.study import agreement

    within = agreement(store, store)
    found = SeedPairs(within.n_seed_pairs, within.changed_between_seeds)
    return found if found.n else None


def _seed_columns(config: StudyConfig) -> tuple[str, ...]:
    if not config.seed_axes:
        return ("seed",)
    crossed = [f"seed_{name}" for name in config.seed_axes]
    # The seeds that are not crossed are one number; the first of them stands for all.
    others = [f"seed_{name}" for name in ("init", "pool", "order", "evaluation")]
    rest = [name for name in others if name not in crossed][:1]
    return (*crossed, *(rest if len(config.seeds) > 1 else ()))


def _facts(config: StudyConfig) -> tuple[tuple[str, str], ...]:
    """The set-up in words; what an axis sets stands with the axes alone."""
    task, model, training, rule = config.task, config.model, config.training, config.rule
    data = "stream" if task.pool is None else f"pool of {task.pool:,} sequences"
    set_by_axis = {*config.all_axes}
    crossed = {name: len(found) for name, found in config.seed_axes.items()}

    def unless(axis: str, words: str) -> list[str]:
        return [] if axis in set_by_axis else [words]

    model_words = [
        *unless("depth", count_of(model.n_layers, "layer")),
        *unless("d_model", f"width {model.d_model}"),
        *unless("n_heads", count_of(model.n_heads, "head")),
        *unless("d_ff", f"feed-forward {model.d_ff}"),
        f"{model.norm_position}-norm {_PROPER.get(model.norm, model.norm)}",
        *unless("activation", _PROPER.get(model.activation, model.activation)),
    ]
    recipe = [
        f"{training.steps:,} steps of {training.batch:,}",
        _PROPER.get(training.optimizer, training.optimizer),
        *unless("lr", f"lr {text_of(training.lr)}"),
        *unless("weight_decay", f"weight decay {text_of(training.weight_decay)}"),
        f"{training.schedule} after {training.warmup_steps:,} steps of warm-up",
    ]
    rates = unless("gamma", f"γ {text_of(rule.gamma)}")
    axes = [
        f"{axis_words(name)[0]} {', '.join(texts_of(values))}"
        for name, values in config.axes.items()
    ]
    lrs = [f"learning rate {', '.join(texts_of(config.lrs))} (best-lr)"] if config.lrs else []
    return (
        ("task", f"{task.variant}, length {task.length}, vocabulary {task.vocabulary}, {data}"),
        ("model", ", ".join(model_words)),
        ("training", ", ".join(recipe)),
        ("rule", ", ".join([rule.name, *rates])),
        ("axes", "; ".join([*axes, *lrs]) or "none"),
        ("seeds", seeds_words(len(config.seeds), crossed)),
    )


_PROPER = {
    "adamw": "AdamW",
    "sgd": "SGD",
    "layernorm": "LayerNorm",
    "rmsnorm": "RMSNorm",
    "relu": "ReLU",
    "gelu": "GELU",
    "gelu_tanh": "GELU (tanh)",
    "swiglu": "SwiGLU",
}


def _environment(sessions: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """What the last session ran with; a page that is passed on says nothing of host and user."""
    if not sessions:
        return {}
    last = sessions[-1]
    packages = last.get("packages")
    versions = packages if isinstance(packages, Mapping) else {}
    kept = {name: last.get(name) for name in ("python", "machine", "processors", "initrate")}
    return {**kept, **versions, "sessions": len(sessions)}

"""Made-up studies for the tests of the report: plausible tables without a second of training."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256

import numpy as np

from initrate.report._source import Axis, Pair, Source
from initrate.report._words import seeds_words

PHASE = (
    Axis("gamma", "gamma", (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
    Axis("depth", "depth", (2, 3, 4)),
)


def synthetic(
    *,
    axes: tuple[Axis, ...] = PHASE,
    n_seeds: int = 3,
    mirrored: bool = False,
    lrs: tuple[float, ...] = (),
    crossed: Mapping[str, tuple[int, ...]] | None = None,
    share_done: float = 1.0,
    name: str = "laptop",
    description: str = "without-34 at small size",
) -> Source:
    """Return a made-up study over any axes; `crossed` takes the place of `n_seeds`."""
    by_kind = crossed or {}
    combinations = list(itertools.product(*by_kind.values())) if by_kind else []
    n_seeds = len(combinations) or n_seeds
    sides = [axis.values for axis in axes]
    plan = list(itertools.product(*sides, lrs or (None,)))
    done = [(seed, *rest) for seed in range(n_seeds) for rest in plan]
    n_cells = len(done)
    done = done[: round(n_cells * share_done)]
    cells, curves, counts, shifts, tensors = [], {}, {}, {}, {}
    for seed, *rest in done:
        settings = {axis.column: found for axis, found in zip(axes, rest, strict=False)}
        if lrs:
            settings["lr"] = rest[-1]
        row = _cell(seed, settings, mirrored=mirrored)
        if by_kind:
            kinds = zip(by_kind, combinations[seed], strict=True)
            row |= {f"seed_{kind}": number for kind, number in kinds} | {"seed": None}
        cells.append(row)
        curves[row["cell"]] = _curve(row, mirrored=mirrored)
        counts[row["cell"]] = _counts(row, mirrored=mirrored)
        shifts[row["cell"]] = _shifts(row, mirrored=mirrored)
        tensors[row["cell"]] = _tensors(row)
    return Source(
        name=name,
        description=description,
        axes=axes,
        seeds_in_words=seeds_words(
            1 if by_kind else n_seeds, {kind: len(found) for kind, found in by_kind.items()}
        ),
        seed_columns=tuple(f"seed_{kind}" for kind in by_kind) or ("seed",),
        crossed={kind: len(found) for kind, found in by_kind.items()},
        n_cells=n_cells,
        cells=cells,
        lrs=lrs,
        pairs=_pairs(mirrored=mirrored),
        curves=curves,
        counts=counts,
        shifts=shifts,
        tensors=tensors,
        timing=[{"bucket": f"b{i}", "seconds": 41.2 + i} for i in range(6)],
        baselines=[
            _baseline("ordered additive", composed=1.0, seen=1.0),
            _baseline("tied additive", composed=1.0, seen=1.0),
            _baseline("unordered lookup", composed=0.0, seen=1.0),
            _baseline("nearest neighbour", composed=0.06, seen=0.21),
        ],
        floors={"no_input": 4.52, "pair_only": 4.38, "key_only": 2.14, "key_and_one_anchor": 1.26},
        facts=(
            ("task", "without-34"),
            ("model", "width 64, 1 head, pre-norm, GELU"),
            ("training", "1,000 steps of 256, AdamW"),
            ("rule", "formula"),
        ),
        config_text='schema = 1\nname = "laptop"\n\n[task]\nvariant = "without-34"\n',
        environment={"python": "3.11.2", "torch": "2.13.0", "platform": "Linux", "cores": 2},
        execution={"buckets": 6, "threads": 2},
        thresholds={"fitted": 0.9, "training": 0.99, "wilson_level": 0.95, "majority": 0.5},
        demonstration=name == "laptop",
        identity="9f2b61c04d7e",
        version="0.1.0",
        built=datetime(2026, 11, 30, 12, 0, tzinfo=UTC),
    )


def _baseline(name: str, *, composed: float, seen: float) -> dict:
    about = f"what {name} does"
    return {
        "baseline": name,
        "about": about,
        "composed": composed,
        "mirrored": None,
        "seen_accuracy": seen,
    }


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _cell(seed: int, settings: dict, *, mirrored: bool) -> dict:
    gamma = settings.get("gamma", 0.55)
    depth = settings.get("depth", 3)
    lr = settings.get("lr", 1e-3)
    decay = settings.get("weight_decay", 0.01)
    rng = np.random.default_rng([seed, int(gamma * 100), depth, int(lr * 1e7), int(decay * 1e4)])
    push = gamma + 0.12 * math.log10(decay / 0.01) + 0.1 * math.log10(lr / 1e-3)
    seen = min(1.0, round(_logistic(30 * (push - 0.44) + rng.normal(0, 1)), 3))
    inferential = seen * _logistic(16 * (push - 0.6 - 0.03 * (depth - 2)) + rng.normal(0, 1.4))
    symmetric = None
    if mirrored:
        band = rng.random() < _logistic(14 * (gamma - 0.72))
        if band:
            inferential, symmetric = 0.12 * seen, 0.88 * seen - 0.05 * rng.random()
        else:
            symmetric = (1 - inferential) * 0.25 * seen
    fit = "fitted" if seen >= 0.9 else ("data_memorized" if gamma >= 0.4 else "not_trained")
    diverged = gamma == 0.3 and depth == 4 and seed == 2
    label = fit
    if diverged:
        fit = label = "diverged"
    elif fit == "fitted":
        label = "composed" if inferential > 0.55 else "mixed"
        if mirrored and (symmetric or 0) > 0.55:
            label = "composed_with_mirrored_exception"
    return {
        "cell": sha256(repr((seed, settings)).encode()).hexdigest()[:12],
        "bucket": "b0",
        **settings,
        "gamma": gamma,
        "gamma_by_role": "{}",
        "depth": depth,
        "lr": lr,
        "weight_decay": decay,
        "seed": seed,
        "fit": fit,
        "label": label,
        "seen_accuracy": seen,
        "training_accuracy": min(1.0, seen + 0.05) if fit != "not_trained" else 0.4,
        "inferential_accuracy": inferential,
        "symmetric_accuracy": symmetric,
        "probe_accuracy": 0.9 * inferential + 0.05 if mirrored else None,
        "commutes": None if mirrored else min(1.0, inferential + 0.1),
        "best_inferential_accuracy": min(1.0, inferential + 0.02),
        "best_step": 800,
        "final_inferential_accuracy": inferential,
        "n_unseen": 4480,
        "diverged": diverged,
        "diverged_step": 350 if diverged else None,
        "sum_lr": 0.53 * lr / 1e-3,
        "sum_lr_weight_decay": 0.53 * lr / 1e-3 * decay,
        "final_training_loss": 0.02 + 2 * (1 - seen),
        "block_to_skip": 64 ** (1 - 2 * gamma) * 4,
    }


def _curve(row: dict, *, mirrored: bool) -> list[dict]:
    rows = []
    for step in range(0, 1001, 50):
        grown = _logistic((step - 350) / 70)
        stop = row["diverged"] and step >= row["diverged_step"]
        rows.append(
            {
                "cell": row["cell"],
                "step": step,
                "loss": None if stop else 4.6 * (1 - grown) + row["final_training_loss"],
                "training_loss": None if stop else 4.6 * (1 - grown) + row["final_training_loss"],
                "lr": row["lr"] * min(step / 200, 0.5 + 0.5 * math.cos(step / 1000 * math.pi)),
                "training_accuracy": grown * row["training_accuracy"],
                "seen_accuracy": grown * row["seen_accuracy"],
                "inferential_accuracy": grown**2 * row["inferential_accuracy"],
                "symmetric_accuracy": grown * row["symmetric_accuracy"] if mirrored else None,
                "probe_accuracy": grown * row["probe_accuracy"] if mirrored else None,
            }
        )
    return rows


def _pairs(*, mirrored: bool) -> tuple[Pair, ...]:
    if mirrored:
        return (
            Pair("4,3", "unseen", composed_shift=-10, mirrored_shift=-6),
            Pair("1,2", "unseen", composed_shift=6, probe=True),
            Pair("2,1", "unseen", composed_shift=6, probe=True),
        )
    return (
        Pair("4,3", "unseen", composed_shift=-10),
        Pair("3,4", "unseen", composed_shift=-10),
    )


def _counts(row: dict, *, mirrored: bool) -> list[dict]:
    rows = []
    for pair in _pairs(mirrored=mirrored):
        for position in range(7):
            last = position == 6
            composed = row["inferential_accuracy"] if not last else 1 - row["inferential_accuracy"]
            rows.append(
                {
                    "cell": row["cell"],
                    "split": "unseen",
                    "pair": pair.text,
                    "by": "position",
                    "index": position,
                    "n": 560,
                    "correct": round(560 * composed),
                    "composed": round(560 * composed),
                    "mirrored": None
                    if pair.mirrored_shift is None
                    else round(560 * (1 - composed)),
                }
            )
    return rows


def _shifts(row: dict, *, mirrored: bool) -> list[dict]:
    rows = []
    for pair in _pairs(mirrored=mirrored):
        composed = round(4480 * row["inferential_accuracy"])
        rest = 4480 - composed
        spread = {-6: 0.6, -7: 0.1, -9: 0.05, -12: 0.1, 3: 0.1, 17: 0.05}
        found = {-10: composed} | {shift: round(rest * part) for shift, part in spread.items()}
        rows += [
            {"cell": row["cell"], "split": "unseen", "pair": pair.text, "shift": s, "n": n}
            for s, n in sorted(found.items())
        ]
    return rows


def _tensors(row: dict) -> list[dict]:
    sizes = {"query": 64, "value": 64, "attention_output": 32, "mlp_in": 64, "mlp_out": 128}
    return [
        {
            "cell": row["cell"],
            "tensor": f"blocks.0.{role}.weight",
            "role": role,
            "d_in": d_in,
            "target_std": d_in ** -row["gamma"],
            "init_std": d_in ** -row["gamma"],
            "final_std": 1.4 * d_in ** -row["gamma"],
            "sigma_sqrt_d": d_in ** (0.5 - row["gamma"]),
            "init_norm": 1.0,
            "final_norm": 1.6,
            "update_norm": 1.1,
        }
        for role, d_in in sizes.items()
    ]

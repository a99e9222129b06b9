"""Preflight: how large signals and gradients are at the start, and whether training will start.

Small weights mostly fail by not starting: the loss stays flat until they have grown. What is
measured here are facts; the bounds of the warnings and the warm-up are rules of thumb.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from initrate.errors import InputError, whole_number
from initrate.frameworks.torch._initial_loss import far_from_equal
from initrate.frameworks.torch._probe import Watched, first_tensor, probe
from initrate.frameworks.torch._warm_up import warm_up
from initrate.rule import Finding
from initrate.rule._checks import positive_number
from initrate.rule._table import html_table, plain_table

_SMALL_BRANCH = 0.2
_FALL = 1e-3
_TIMES_EPS = 10


@dataclass(frozen=True, slots=True)
class PreflightRow:
    """What was measured of one module, in the order in which the modules ran."""

    name: str
    kind: str
    """The name of its class."""
    activation: float
    """Root mean square of its output."""
    gradient: float | None
    """Root mean square of the gradient of the loss by its output."""
    weight_gradient: float | None
    """The same by its own matrices; of a layer of a stack, by all matrices in it."""
    block_to_skip: float | None
    """Of a layer of a stack: the size of what it adds to its input, beside the input's."""
    stack: str
    """The list of layers that it is one of."""

    def to_dict(self) -> dict[str, object]:
        """Return the row as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Preflight:
    """What was measured of the first step of a model, and what it foretells."""

    rows: tuple[PreflightRow, ...]
    loss: float
    expected_loss: float | None
    """ln(number of classes), the loss of a model that prefers nothing; None where it is no
    cross-entropy of classes."""
    findings: tuple[Finding, ...]
    """IR110, where the loss is far from that."""
    warnings: tuple[str, ...]
    """What makes the start a plateau."""
    suggested_warmup: int
    """Steps."""
    reasoning: str
    """Why that many: a rule of thumb."""

    @property
    def ok(self) -> bool:
        """Whether there is neither a finding nor a warning."""
        return not self.findings and not self.warnings

    def to_dict(self) -> dict[str, object]:
        """Return all of it as plain values; what is not finite as None."""
        return {
            "rows": [{k: _plain(x) for k, x in row.to_dict().items()} for row in self.rows],
            "loss": _plain(self.loss),
            "expected_loss": self.expected_loss,
            "findings": [finding.to_dict() for finding in self.findings],
            "warnings": list(self.warnings),
            "suggested_warmup": self.suggested_warmup,
            "reasoning": self.reasoning,
        }

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the head and the rows of the table that people read."""
        head = ("module", "class", "activation", "gradient", "weight gradient", "block to skip")
        return head, [
            (
                row.name or "model",
                row.kind,
                *(
                    "" if x is None else f"{x:.3g}"
                    for x in (row.activation, row.gradient, row.weight_gradient, row.block_to_skip)
                ),
            )
            for row in self.rows
        ]

    def _notes(self) -> list[str]:
        loss = f"loss {self.loss:.4g}"
        if self.expected_loss is not None:
            loss += f", ln(classes) {self.expected_loss:.4g}"
        warm_up = f"suggested warm-up: {self.suggested_warmup} steps. {self.reasoning}"
        return [loss, *map(str, self.findings), *self.warnings, warm_up]

    def __str__(self) -> str:
        return plain_table(*self.table(), below="\n".join(self._notes()))

    def _repr_html_(self) -> str:
        return html_table(*self.table(), notes=self._notes())


def _plain(found: object) -> object:
    return None if isinstance(found, float) and not math.isfinite(found) else found


def preflight(
    model: nn.Module,
    batch: object,
    *,
    loss: Callable[..., torch.Tensor] | None = None,
    labels: torch.Tensor | None = None,
    steps: int | None = None,
    beta2: float = 0.999,
    eps: float = 1e-8,
) -> Preflight:
    """Return what one forward and backward of the model show; the model is not changed.

    `batch` is a tensor, a tuple of arguments, or a dict of named ones. The loss is the model's own,
    as in the models of transformers when the batch has labels; or the cross-entropy of the logits
    and `labels`; or `loss(output)`, with labels `loss(logits, labels)`. The model runs in training
    mode; parameters, gradients, buffers, training flags and random states are as before.

    The warm-up is meant for Adam with `beta2` and `eps`, in a training of `steps` steps if given.

    >>> _ = torch.manual_seed(0)
    >>> model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 10))
    >>> found = preflight(model, torch.randn(8, 16), labels=torch.arange(8))
    >>> found.ok, round(found.expected_loss, 3), [row.name for row in found.rows]
    (True, 2.303, ['0', '1', '2', ''])
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"model is {type(model).__name__}: expected a torch.nn.Module")
    if steps is not None:
        whole_number("steps", steps, least=1, most=10**12)
    positive_number("eps", eps)
    if not 0 < positive_number("beta2", beta2) < 1:
        raise InputError(f"beta2 is {beta2!r}: expected a number between 0 and 1")
    model = _unwrapped(model)
    measure = _loss(loss, labels)
    seen = probe(model, batch, measure)
    rows = tuple(_row(watched) for watched in seen.watched)
    targets = labels
    if targets is None and isinstance(batch, Mapping):
        targets = batch.get("labels")
    expected, logits = None, _logits(seen.output)
    if loss is None or isinstance(loss, nn.CrossEntropyLoss):
        expected = _expected_loss(logits, targets)
    warnings = tuple(_warnings(rows, seen.loss, eps))
    steps_up, reasoning = warm_up(steps=steps, beta2=beta2, plateau=bool(warnings))
    findings: tuple[Finding, ...] = ()
    if expected is not None and logits is not None:
        findings = tuple(far_from_equal(seen.loss, expected, logits))
    return Preflight(rows, seen.loss, expected, findings, warnings, steps_up, reasoning)


def _unwrapped(model: nn.Module) -> nn.Module:
    """Return the model inside of wrappers, whose backward pass would do more than backward."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if isinstance(model, nn.parallel.DistributedDataParallel | nn.DataParallel):
            inner = model.module
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def _row(watched: Watched) -> PreflightRow:
    skip, branch = watched.skip.rms, watched.branch.rms
    return PreflightRow(
        watched.name,
        watched.kind,
        watched.activation.rms or 0.0,
        watched.gradient.rms,
        watched.weight_gradient.rms,
        branch / skip if skip and branch is not None else None,
        watched.stack,
    )


def _logits(output: Any) -> torch.Tensor | None:
    """Return the logits of what a model gives."""
    if isinstance(output, Mapping):
        found = output.get("logits")
    else:
        found = getattr(output, "logits", None)
    return found if isinstance(found, torch.Tensor) else first_tensor(output)


def _loss(
    loss: Callable[..., torch.Tensor] | None, labels: torch.Tensor | None
) -> Callable[[Any], torch.Tensor]:
    """Return the loss as a function of the model's output."""
    if loss is not None and not callable(loss):
        raise InputError(f"loss is {loss!r}: expected a function")
    if labels is not None and not isinstance(labels, torch.Tensor):
        raise InputError(f"labels is {type(labels).__name__}: expected a tensor")

    def of_output(output: Any) -> torch.Tensor:
        own = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
        if isinstance(output, torch.Tensor) and output.numel() == 1:
            own = output
        if loss is None and labels is None:
            if not isinstance(own, torch.Tensor):
                raise InputError(
                    "the model gives no loss of its own: put labels into the batch, or give "
                    "labels=... or loss=..."
                )
            return own
        logits = _logits(output)
        if labels is None:
            assert loss is not None
            return _called(loss, output)
        if logits is None:
            raise InputError("the model gives no logits: give loss=..., a function of its output")
        if loss is not None:
            return _called(loss, logits, labels)
        classes = _classes(logits, labels)
        if classes is None:
            raise InputError(
                f"labels have the shape {tuple(labels.shape)} and logits {tuple(logits.shape)}: "
                "expected whole numbers, one for each row of classes; else give loss=..."
            )
        rows = logits.movedim(classes, -1).flatten(0, -2)
        return _called(nn.functional.cross_entropy, rows, labels.flatten())

    return of_output


def _called(loss: Callable[..., torch.Tensor], *given: Any) -> torch.Tensor:
    try:
        return loss(*given)
    # A loss of the user's may raise anything.
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        raise InputError(f"the loss does not take what the model gives: {text}") from error


def _classes(logits: torch.Tensor, labels: torch.Tensor) -> int | None:
    """Return the axis of the logits that runs over classes, or None."""
    if labels.is_floating_point() or labels.is_complex() or logits.dim() < 2:
        return None
    if labels.shape == logits.shape[:-1]:
        return logits.dim() - 1
    return 1 if labels.shape == (*logits.shape[:1], *logits.shape[2:]) else None


def _expected_loss(logits: torch.Tensor | None, labels: object) -> float | None:
    """Return ln(number of classes) where the loss is a cross-entropy of these."""
    if logits is None or not isinstance(labels, torch.Tensor):
        return None
    axis = _classes(logits, labels)
    return None if axis is None or logits.shape[axis] < 2 else math.log(logits.shape[axis])


def _warnings(rows: Iterable[PreflightRow], loss: float, eps: float) -> Iterator[str]:
    """Yield what makes the start a plateau."""
    rows = tuple(rows)
    broken = [row.name or "model" for row in rows if not math.isfinite(row.activation)]
    if broken or not math.isfinite(loss):
        where = f", first at {broken[0]!r}" if broken else ""
        yield f"values that are not finite{where}: the loss is {loss:.4g}"
        return
    stacks: dict[str, list[PreflightRow]] = {}
    for row in rows:
        if row.stack:
            stacks.setdefault(row.stack, []).append(row)
    for name, layers in stacks.items():
        yield from _fading(name, layers)
        ratios = [row.block_to_skip for row in layers if row.block_to_skip]
        if len(layers) > 1 and ratios and max(ratios) < _SMALL_BRANCH:
            yield (
                f"the layers of {name!r} hardly write: what a layer adds is at most "
                f"{max(ratios):.2g} of its input (under {_SMALL_BRANCH}), so that the stack starts "
                "as the identity and the loss as that of a model without it"
            )
    # A gradient of exactly 0 is that of a map beside one that starts at zero, such as an adapter's:
    # it is there as soon as the other has moved.
    small = [row for row in rows if 0 < (row.weight_gradient or 0) < _TIMES_EPS * eps]
    if small:
        least = min(small, key=lambda row: row.weight_gradient or 0.0)
        yield (
            f"the gradient of {len(small)} modules is no larger than {_TIMES_EPS} times Adam's eps "
            f"{eps:g}, the least {least.weight_gradient:.2g} in {least.name!r}: their steps are "
            "smaller than the learning rate, or none"
        )


def _fading(name: str, layers: list[PreflightRow]) -> Iterator[str]:
    """Yield what fades from the first layer of a stack to its last, or back."""
    first, last = layers[0], layers[-1]
    if last.activation < _FALL * first.activation:
        yield (
            f"the signal fades in {name!r}: from {first.activation:.2g} in {first.name!r} to "
            f"{last.activation:.2g} in {last.name!r}"
        )
    if first.gradient is None or last.gradient is None:
        return
    if first.gradient < _FALL * last.gradient:
        yield (
            f"the gradient fades in {name!r}: from {last.gradient:.2g} in {last.name!r} to "
            f"{first.gradient:.2g} in {first.name!r}, so that early layers learn last"
        )

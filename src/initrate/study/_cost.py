"""What a study costs before it is run: parameters, operations, memory, time to expect."""

from __future__ import annotations

import time
from dataclasses import dataclass

from initrate.errors import InputError
from initrate.model import n_parameters
from initrate.study._cell import Cell

FLOAT_BYTES = 4
MODEL_COPIES = 5
"""Weights, initial weights, gradient and AdamW's two moments."""
ACTIVATION_COPIES = 2.5
"""What the backward pass keeps of an activation, and what is alive beside it for a while."""
OVERHEAD = 1.8
"""Time of a step over that of its matrix products alone: norms, softmax, optimizer, evaluation."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one cell."""

    parameters: int
    operations: float
    """Multiplications and additions of all steps, forward and backward."""
    memory: float
    """Bytes that one more such model takes in a bucket; an estimate."""

    def seconds(self, speed: float) -> float:
        """Return the time to expect at a speed in operations a second."""
        return OVERHEAD * self.operations / speed


def cost(cell: Cell) -> Cost:
    """Return what it costs to train a cell.

    >>> from initrate.model import ModelConfig
    >>> from initrate.rule import Rule
    >>> from initrate.tasks import variant
    >>> from initrate.training import Seeds, Training
    >>> cell = Cell(variant("34-wrong"), ModelConfig(), Rule(), Training(steps=10), Seeds())
    >>> cost(cell).operations == 10 * step_operations(cell)
    True
    """
    parameters = n_parameters(cell.model, cell.task.vocabulary)
    memory = MODEL_COPIES * parameters * FLOAT_BYTES + _activation_bytes(cell)
    return Cost(parameters, cell.training.steps * step_operations(cell), memory)


def step_operations(cell: Cell) -> float:
    """Return the multiplications and additions of one training step, the plain way.

    Two for each weight of a linear map and token, the products of queries, keys and values
    beside them; the backward pass takes twice as many as the forward pass.
    """
    model, training = cell.model, cell.training
    tokens = training.batch * cell.task.length
    answered = tokens if training.loss == "all" else training.batch
    heads = model.n_heads
    gates = 3 if model.activation == "swiglu" else 2
    maps = model.d_model * (2 * heads * (model.d_k + model.d_v) + gates * model.d_ff)
    products = cell.task.length * heads * (model.d_k + model.d_v)
    layers = model.n_layers * (maps + products) * tokens
    return 3 * 2 * (layers + model.d_model * cell.task.vocabulary * answered)


def measure_speed(cell: Cell, *, seconds: float = 1.0, threads: int | None = None) -> float:
    """Return the operations a second that this machine reaches in products of the cell's size."""
    try:
        import torch
    except ImportError as error:
        raise InputError(
            "the laboratory needs torch: install it with pip install 'initrate[lab]'"
        ) from error
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    rows, inner, columns = (
        cell.training.batch * cell.task.length,
        cell.model.d_model,
        cell.model.d_ff,
    )
    left, right = torch.ones(4, rows, inner), torch.ones(4, inner, columns)
    best, end = 0.0, time.perf_counter() + seconds
    try:
        while time.perf_counter() < end or not best:
            start = time.perf_counter()
            torch.bmm(left, right)
            best = max(best, 2 * left.numel() * columns / (time.perf_counter() - start))
    finally:
        torch.set_num_threads(before)
    return best


def _activation_bytes(cell: Cell) -> float:
    model = cell.model
    gates = 3 if model.activation == "swiglu" else 2
    heads = model.n_heads
    values = 6 * model.d_model + heads * (2 * model.d_k + 2 * model.d_v) + gates * model.d_ff
    values += 2 * heads * cell.task.length
    tokens = cell.training.batch * cell.task.length
    answered = tokens if cell.training.loss == "all" else cell.training.batch
    held = model.n_layers * values * tokens + 3 * cell.task.vocabulary * answered
    return ACTIVATION_COPIES * FLOAT_BYTES * held

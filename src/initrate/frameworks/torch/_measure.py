"""Moments of the tensors of a model, part by part, and what is done to them on the way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch

from initrate.frameworks.torch._fill import WINDOW, Piece, pieces, regions
from initrate.frameworks.torch._memory import refuse_lost
from initrate.frameworks.torch._sharded import add_up, is_sharded, local_region
from initrate.frameworks.torch._walk import ModelTensor
from initrate.measure import Moments, moments
from initrate.measure._moments import NOTHING
from initrate.rule import Slice, kept_memory

_PIECES_A_TASK = 16

Touch = Callable[[Piece], object]
"""What is done to a piece before it is measured."""


@dataclass(frozen=True, slots=True)
class Job:
    """A part of a tensor that is to be measured, and what is done to it before."""

    tensor: torch.Tensor
    where: Slice | None = None
    touch: Touch | None = None


def is_measurable(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has values here that are real numbers."""
    return (
        not tensor.is_meta
        and not tensor.is_neg()
        and tensor.layout == torch.strided
        and tensor.dtype.is_floating_point
        and (is_sharded(tensor) or is_plain(tensor))
    )


def is_plain(tensor: torch.Tensor) -> bool:
    """Return whether a tensor holds its numbers as torch does, and not in a form of its own."""
    own, plain = (
        getattr(kind, "__torch_dispatch__", None) for kind in (type(tensor), torch.Tensor)
    )
    return own is plain


def measure_tensors(tensors: Sequence[ModelTensor]) -> dict[str, Moments]:
    """Return the moments of every part that has values here, by its name in the plan."""
    for tensor in tensors:
        if is_measurable(tensor.tensor) and not is_sharded(tensor.tensor):
            refuse_lost(tensor.records[0].name, tensor.tensor)
    named = [
        (record.key, Job(tensor.tensor.detach(), record.where))
        for tensor in tensors
        if is_measurable(tensor.tensor)
        for record in tensor.records
    ]
    found = run_jobs([job for _, job in named])
    return dict(zip((key for key, _ in named), found, strict=True))


def run_jobs(jobs: Sequence[Job]) -> list[Moments]:
    """Touch and measure all parts, on the threads of torch; return the moments of each whole part.

    A piece is measured right after it was touched, while it is near; what is measured is read
    back from the tensor. The sums are taken in one order, whatever the number of threads.
    """
    found = [NOTHING] * len(jobs)

    def add(outcome: tuple[int, Moments]) -> None:
        index, part = outcome
        found[index] += part

    with kept_memory():
        _in_order(_tasks(jobs), _work, add, torch.get_num_threads())
    return add_up([job.tensor for job in jobs], found)


_Task = tuple[int, Touch | None, tuple[Piece, ...]]


def _tasks(jobs: Sequence[Job]) -> Iterator[_Task]:
    for index, job in enumerate(jobs):
        local, whole, offset = local_region(job.tensor)
        every = (p for region in regions(local, whole, offset, job.where) for p in pieces(region))
        while some := tuple(islice(every, _PIECES_A_TASK)):
            yield index, job.touch, some


def _work(task: _Task) -> tuple[int, Moments]:
    index, touch, some = task
    found = NOTHING
    for piece in some:
        if touch is not None:
            touch(piece)
        found += _moments(piece.view)
    return index, found


def _moments(view: torch.Tensor) -> Moments:
    # Not every type of torch has one in NumPy; float32 holds the values of all short ones.
    if view.dtype not in (torch.float32, torch.float64):
        view = view.float()
    if view.device.type != "cpu" or not view.numel():
        return moments(view.cpu().numpy(), block=WINDOW)
    # As `moments` has it, in torch's own passes, which are faster.
    lowest, highest = torch.aminmax(view)
    norm = float(torch.linalg.vector_norm(view, dtype=torch.float64))
    total = float(view.sum(dtype=torch.float64))
    return Moments(view.numel(), total, norm * norm, float(lowest), float(highest))


def _in_order(
    tasks: Iterable[_Task],
    work: Callable[[_Task], tuple[int, Moments]],
    take: Callable[[tuple[int, Moments]], None],
    n_threads: int,
) -> None:
    """Work on several threads, and take the outcomes in the order of the tasks.

    Tasks are made as they are needed, and outcomes are kept no longer than those before them.
    """
    numbered, lock = enumerate(tasks), threading.Lock()
    waiting: dict[int, tuple[int, Moments]] = {}
    following = 0
    failed: list[BaseException] = []

    def worker() -> None:
        nonlocal following
        torch.set_num_threads(1)  # Each has a core of its own.
        try:
            while not failed:
                with lock:
                    number, task = next(numbered, (-1, None))
                if task is None:
                    return
                outcome = work(task)
                with lock:
                    waiting[number] = outcome
                    while following in waiting:
                        take(waiting.pop(following))
                        following += 1
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=worker) for _ in range(n_threads - 1)]
    for thread in threads:
        thread.start()
    try:
        worker()
    finally:
        torch.set_num_threads(n_threads)
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]

"""Whether a model looks trained: a fresh norm has one gain for all."""

from __future__ import annotations

from initrate.errors import InputError
from initrate.frameworks.torch._measure import Job, run_jobs
from initrate.frameworks.torch._special import is_adapter
from initrate.frameworks.torch._writable import TensorRows, is_written


def refuse_trained(pairs: TensorRows) -> None:
    """Raise the error for a model that has learned something that apply would overwrite.

    It is told by a norm whose weight or bias is not constant. Where adapters alone are drawn, the
    model under them may well be trained; then it is told by a second map that is not zero.
    """
    written = [(t, rows) for t, rows in pairs if is_written(rows) and not t.tensor.is_meta]
    adapters = bool(written) and all(is_adapter(rows[0].record.name) for _, rows in written)
    asked = [
        (tensor, rows[0].record.name)
        for tensor, rows in (written if adapters else pairs)
        if not tensor.tensor.is_meta
        and (rows[0].action == "zero" if adapters else tensor.records[0].roles == ("norm",))
    ]
    found = run_jobs([Job(tensor.tensor.detach()) for tensor, _ in asked])
    for (_, name), moments in zip(asked, found, strict=True):
        learned = moments.largest > 0 if adapters else not moments.constant
        if moments.size and learned:
            fresh = "zero, as an adapter's second map is at first" if adapters else "constant"
            raise InputError(
                f"{name!r} is not {fresh}: the model looks trained, and apply would overwrite what "
                "it has learned; give force=True if that is meant"
            )

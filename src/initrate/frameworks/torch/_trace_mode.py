"""The recorder: a dispatch mode that follows parameters from operation to operation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from initrate.frameworks.torch import _trace_operations as operations
from initrate.frameworks.torch._trace_axes import Digit, broadcast, joined, laid_out
from initrate.frameworks.torch._trace_record import Record, axes_of
from initrate.frameworks.torch._trace_storages import Storages, key_of, tensors_in
from initrate.frameworks.torch._trace_use import Use
from initrate.frameworks.torch._trace_values import Values


class Recorder(TorchDispatchMode):
    """Records the uses of parameters, each given with all of its copies."""

    def __init__(
        self,
        parameters: Sequence[Sequence[torch.Tensor]],
        constants: Iterable[torch.Tensor],
        values: Values | None = None,
    ) -> None:
        super().__init__()
        self.last = ""
        """The operation that began last."""
        self.record = Record([tuple(copies[0].shape) if copies else () for copies in parameters])
        self._values = values
        self._storages = Storages(parameters, constants)
        self._partial: dict[int, frozenset[int]] = {}
        """Storages of products of a part of the inputs of parameters."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run the operation, then note what it did with values of parameters."""
        self.last = operations.name_of(func)
        kwargs = kwargs or {}
        if self._values is None:
            out = func(*args, **kwargs)
        else:
            out = self._values.run(func, args, kwargs)
        self._note(func, args, kwargs, out)
        return out

    def _note(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> None:
        name, results = self.last, tensors_in(out)
        operands = tensors_in((args, kwargs))
        known = {key_of(tensor) for tensor in operands}
        if func._schema.is_mutable:
            self._note_written(func, args, operands)
            return
        self._note_sums(name, operands, results)
        fresh = [tensor for tensor in results if key_of(tensor) not in known]
        if not fresh:
            return  # A view: its strides tell all.
        of_example = any(self._storages.of_example(tensor) for tensor in operands)
        if name in operations.FORMS:
            of_example = False
        elif any(self._storages.of_parameters(tensor) for tensor in operands):
            self._note_parameters(func, args, kwargs, operands, fresh, of_example=of_example)
        if not of_example:
            for tensor in fresh:
                if not self._storages.of_parameters(tensor):
                    self._storages.keep_constant(tensor)

    def _note_parameters(
        self,
        func: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        operands: list[torch.Tensor],
        fresh: list[torch.Tensor],
        *,
        of_example: bool,
    ) -> None:
        """Note an operation on values of parameters, which writes to none of its operands."""
        name = self.last
        if name in operations.PRODUCTS:
            self._note_product(name, args, kwargs, fresh[0])
        elif name in operations.TABLES:
            for operand, tensor in enumerate(args):
                for seen in self._storages.seen(tensor):
                    if operand == operations.TABLES[name]:
                        self.record.table(seen, name)
                    else:
                        self.record.lose(seen, name)
        elif name in operations.NORMS or (name in operations.PLACED and of_example):
            self._use_by_place(operands, name)
        elif name in ("cat", "stack"):
            self._note_joined(name, args, fresh[0], of_example=of_example)
        elif name in ("index", "index_select"):
            self._note_gathered(name, args, fresh[0])
        elif name == "repeat":
            self._note_repeated(args, fresh[0])
        elif name in operations.COPIES and len(operands) == 1:
            self._pass_on(operands, fresh[0], "")
        elif operations.by_place(func) or name in operations.CHANGES:
            if of_example and any(self._storages.of_example(tensor) for tensor in operands):
                self._use_by_place(operands, name)
            else:
                self._pass_on(operands, fresh[0], name)
        else:
            self._lose_all(operands, name)

    def _note_written(self, func: Any, args: tuple[Any, ...], operands: list[torch.Tensor]) -> None:
        """Note an operation that writes to its first operand."""
        name = self.last
        target = args[0] if args and isinstance(args[0], torch.Tensor) else None
        others = operands[1:]
        if target is None or self._storages.is_parameter(target):
            self._lose_all(operands, name)
            return
        sources = any(self._storages.of_parameters(tensor) for tensor in others)
        if self._storages.of_example(target) or any(
            self._storages.of_example(tensor) for tensor in others
        ):
            self._note_sums(name, operands, [])
            if sources or self._storages.of_parameters(target):
                self._use_by_place(operands, name)
            self._storages.forget(target)
            return
        if not sources and not self._storages.of_parameters(target):
            return
        whole = target.numel() * target.element_size() == target.untyped_storage().nbytes()
        if whole and (operations.by_place(func) or name == "copy_"):
            copied = name == "copy_"
            self._pass_on(others if copied else operands, target, "" if copied else name.strip("_"))
        else:
            self._lose_all(operands, name)

    def _note_product(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: torch.Tensor
    ) -> None:
        products = {product.operand: product for product in operations.PRODUCTS[name](args)}
        seen = {operand: self._storages.seen(args[operand]) for operand in products}
        rest = [x for i, x in enumerate(args) if i not in products] + list(kwargs.values())
        self._use_by_place(tensors_in(rest), name)
        filled = [operand for operand, found in seen.items() if found]
        if len(filled) > 1:
            # Of two parameters, the map is the second where a bias is added; else it is not known.
            if name == "addmm" and isinstance(args[0], torch.Tensor) and args[0].dim() == 1:
                self._use_by_place([args[1]], name)
                filled = [2]
            else:
                for operand in filled:
                    for found in seen[operand]:
                        self.record.lose(found, f"{name} of two parameters")
                return
        partial = set()
        for operand in filled:
            for found in seen[operand]:
                if self.record.product(found, products[operand], name):
                    partial.add(found.parameter)
        if partial:
            self._partial[self._storages.hold(out)] = frozenset(partial)

    def _note_joined(
        self, name: str, args: tuple[Any, ...], out: torch.Tensor, *, of_example: bool
    ) -> None:
        tensors = [tensor for tensor in args[0] if tensor.numel()]
        if of_example:
            self._use_by_place(tensors, name)
            return
        axis = (args[1] if len(args) > 1 else 0) % out.dim()
        start, origins = 0, []
        for tensor in tensors:
            side = 1 if name == "stack" else tensor.shape[axis]
            for seen in self._storages.seen(tensor):
                if seen.digits is None:
                    self.record.lose(seen, name)
                    continue
                digits = seen.digits
                if name == "stack":
                    digits = (*digits[:axis], (Digit(1, None),), *digits[axis:])
                digits = joined(digits, axis, start, out.shape[axis])
                origins.append(replace(seen.origin, fines=laid_out(digits, out.stride())))
            start += side
        self._storages.keep(out, tuple(origins))

    def _note_gathered(self, name: str, args: tuple[Any, ...], out: torch.Tensor) -> None:
        if name == "index_select":
            axes, rank = (args[1] % args[0].dim(),), 1
        else:
            indices = [i for i in args[1] if i is not None]
            axes = tuple(axis for axis, i in enumerate(args[1]) if i is not None)
            rank = max(i.dim() for i in indices)
            wide = any(i.dtype in (torch.bool, torch.uint8) and i.dim() > 1 for i in indices)
            if wide or axes[-1] - axes[0] != len(axes) - 1:
                self._lose_all(tensors_in(args), name)
                return
        origins = []
        for seen in self._storages.seen(args[0]):
            if seen.digits is None:
                self.record.lose(seen, name)
                continue
            picked = axes_of([seen.digits[axis] for axis in axes])
            first = axes[0]
            sides = out.shape[first : first + rank]
            rows = tuple((Digit(side, None, gathered=True),) for side in sides)
            digits = (*seen.digits[:first], *rows, *seen.digits[first + len(axes) :])
            gathered = tuple(sorted({*seen.origin.gathered, *picked}))
            fines = laid_out(digits, out.stride())
            origins.append(replace(seen.origin, fines=fines, gathered=gathered))
        self._storages.keep(out, tuple(origins))

    def _note_repeated(self, args: tuple[Any, ...], out: torch.Tensor) -> None:
        tensor, times = args[0], args[1]
        ones = (1,) * (len(times) - tensor.dim()) + tuple(tensor.shape)
        if any(many > 1 and side > 1 for side, many in zip(ones, times, strict=True)):
            self._lose_all([tensor], "repeat")
        else:
            self._pass_on([tensor], out, "")

    def _note_sums(
        self, name: str, operands: list[torch.Tensor], results: list[torch.Tensor]
    ) -> None:
        """Lose a parameter whose outputs are added up from products of parts of its inputs."""
        parts = [self._partial.get(key_of(tensor), frozenset[int]()) for tensor in operands]
        if not any(parts):
            return
        summed = frozenset[int]()
        if name in ("sum", "mean"):
            summed = parts[0]
        elif name in ("add", "add_") and len(parts) > 1:
            summed = parts[0] & parts[1]
        elif name in ("addmm", "baddbmm"):
            again = {
                seen.parameter for tensor in operands[1:] for seen in self._storages.seen(tensor)
            }
            summed = parts[0] & again
        for parameter in summed:
            self.record.uses[parameter][Use("lost", f"{name} of products of its parts")] = None
        if name in ("add", "cat", "stack") or name in operations.COPIES:
            for tensor in results:
                self._partial[self._storages.hold(tensor)] = frozenset[int]().union(*parts)

    def _pass_on(self, operands: list[torch.Tensor], out: torch.Tensor, change: str) -> None:
        """Note that a result has the values of its operands, place by place."""
        origins = []
        for tensor in operands:
            for seen in self._storages.seen(tensor):
                if seen.digits is None:
                    self.record.lose(seen, change or "copy")
                    continue
                digits = broadcast(seen.digits, tensor.shape, out.shape)
                through = seen.origin.through
                if change and change not in through:
                    through = (*through, change)
                fines = laid_out(digits, out.stride())
                origins.append(replace(seen.origin, fines=fines, through=through))
        self._storages.keep(out, tuple(dict.fromkeys(origins)))

    def _lose_all(self, operands: list[torch.Tensor], name: str) -> None:
        for tensor in operands:
            for seen in self._storages.seen(tensor):
                self.record.lose(seen, name)

    def _use_by_place(self, operands: list[torch.Tensor], name: str) -> None:
        for tensor in operands:
            for seen in self._storages.seen(tensor):
                self.record.by_place(seen, name)

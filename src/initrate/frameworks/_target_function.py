"""A target `module:function`: the model that a function of the user's makes."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from initrate.errors import InputError
from initrate.frameworks import _dispatch
from initrate.frameworks._reading import told
from initrate.frameworks._safetensors import eight_bits
from initrate.frameworks._target import EVERY, Values, Which
from initrate.measure import moments
from initrate.rule import Audit, Plan, Rule

_WORDS = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}


@dataclass(frozen=True, slots=True)
class FunctionTarget:
    """A model that is in memory."""

    name: str
    model: object

    @classmethod
    def load(cls, name: str) -> FunctionTarget:
        """Import the module from the current folder and call the function."""
        module_name, _, path = name.partition(":")
        with _current_folder():
            try:
                # What the user's code prints is no result of the command.
                with contextlib.redirect_stdout(sys.stderr):
                    found: object = importlib.import_module(module_name)
                    for part in path.split("."):
                        found = getattr(found, part)
                    if not callable(found):
                        raise InputError(f"{name!r} is {type(found).__name__}: expected a function")
                    if inspect.iscoroutinefunction(found):
                        raise InputError("is an async function: expected one that returns a model")
                    return cls(name, found())
            except InputError as error:
                raise InputError(f"{name}: {' '.join(str(error).split())}") from error
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                raise InputError(f"{name} gives no model: {told(error)}") from error

    def plan(self, rule: Rule, which: Which = EVERY) -> Plan:
        """Return what the rule does with every tensor."""
        return _dispatch.plan(self.model, rule=rule, **asdict(which))

    def audit(self, rule: Rule | None, which: Which = EVERY, *, waive: Sequence[str] = ()) -> Audit:
        """Return what the tensors measure."""
        return _dispatch.audit(self.model, rule=rule, waive=waive, **asdict(which))

    def notes(self) -> list[str]:
        """Return nothing: the user has made the model."""
        return []

    def values(self) -> dict[str, Values]:
        """Return what every tensor of the model holds, by its name."""
        return {
            name: _values(array, dtype) for name, array, dtype in _dispatch.arrays_of(self.model)
        }


def _values(array: np.ndarray, dtype: str) -> Values:
    """Return what an array holds; short types come as bytes beside their numbers."""
    word = _WORDS.get(dtype, dtype)
    found = hashlib.sha256(f"{word} {array.shape}".encode())
    found.update(np.ascontiguousarray(array).tobytes())
    numbers = array
    if dtype == "bfloat16" and array.dtype.kind in "iuV":
        numbers = (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    elif word in ("F8_E4M3", "F8_E5M2"):
        numbers = eight_bits(word)[array.view(np.uint8)]
    measured = moments(numbers) if numbers.dtype.kind == "f" else None
    return Values(tuple(array.shape), word, measured, found.hexdigest())


@contextlib.contextmanager
def _current_folder() -> Iterator[None]:
    """Let the modules of the current folder be found, as `python -m` does."""
    before = list(sys.path)
    sys.path.insert(0, str(Path.cwd()))
    try:
        yield
    finally:
        sys.path[:] = before

"""A safetensors file, read tensor by tensor and block by block with NumPy alone.

The header is checked wholly before a value is read: its length, its JSON, every type, shape and
offset; tensors must fill the file without gap or overlap. Pickled files are never opened.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from initrate.errors import InputError
from initrate.files import shown

HEADER_LIMIT = 32_000_000
"""Bytes of a header that are read; more is refused."""
MOST_TENSORS = 250_000
_MOST_AXES = 64
_PREFIX = 8

BITS: dict[str, int] = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}
"""How many bits a value has, by the words of the format."""
MEASURED = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2")
"""The types whose values are numbers of their own; others are codes of a quantized tensor."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """Where a tensor lies: its values fill the bytes from `start` to `end` of the file."""

    path: Path
    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def size(self) -> int:
        """The number of values."""
        return math.prod(self.shape)

    @property
    def measured(self) -> bool:
        """Whether the values are floating-point numbers of their own."""
        return self.dtype in MEASURED


def read_header(path: Path) -> dict[str, StoredTensor]:
    """Return the tensors of a file by their names, in the order of the file."""
    if path.exists() and not path.is_file():
        raise InputError(f"{shown(path)} is not a plain file: expected a safetensors file")
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(_PREFIX + 1)
            length = _header_length(path, head, size)
            text = head[_PREFIX:] + file.read(length - 1)
    except OSError as error:
        raise InputError(f"cannot read {shown(path)}: {error.strerror or error}") from error
    if len(text) < length:
        raise _truncated(path, _PREFIX + length, size)
    start = _PREFIX + length
    found = _entries(path, _json(path, text))
    tensors = [_tensor(path, name, entry, start) for name, entry in found.items()]
    tensors.sort(key=lambda tensor: (tensor.start, tensor.end))
    _check_places(path, tensors, start, size)
    return {tensor.name: tensor for tensor in tensors}


def _header_length(path: Path, head: bytes, size: int) -> int:
    # A header of 128 bytes begins with the byte of a pickle too; what follows tells them apart.
    if (head[:2] == b"PK" or head[:1] == b"\x80") and head[_PREFIX:] != b"{":
        raise InputError(
            f"{shown(path)} is a pickle, as torch.save writes it, which is never opened here: "
            "save the tensors as safetensors"
        )
    if len(head) < _PREFIX:
        raise InputError(f"{shown(path)} is not a safetensors file: it has {size} bytes")
    (length,) = struct.unpack("<Q", head[:_PREFIX])
    if not 2 <= length <= HEADER_LIMIT:
        raise InputError(
            f"{shown(path)} is not a safetensors file, or no sound one: its header would have "
            f"{length:,} bytes, and {HEADER_LIMIT:,} are read at most"
        )
    if _PREFIX + length > size:
        raise _truncated(path, _PREFIX + length, size)
    return length


def _truncated(path: Path, expected: int, size: int) -> InputError:
    return InputError(
        f"{shown(path)} is truncated: it has {size:,} bytes, and its header tells of at least "
        f"{expected:,}; copy it once more"
    )


def _json(path: Path, text: bytes) -> object:
    """Return the header's value; a key given twice, nan and infinity are errors."""

    def without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, inner in pairs:
            if key in found:
                raise ValueError(f"{key!a} is given twice")
            found[key] = inner
        return found

    def no_constant(word: str) -> object:
        raise ValueError(f"{word} is no JSON number")

    if not text.startswith(b"{"):
        raise InputError(f"{shown(path)} is not a safetensors file: its header is no JSON object")
    try:
        return json.loads(
            text.decode("utf-8"), object_pairs_hook=without_repeats, parse_constant=no_constant
        )
    except RecursionError as error:
        raise InputError(f"{shown(path)}: its header is nested too deeply") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{shown(path)}: its header is not text in UTF-8") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{shown(path)}: its header is not JSON: {error.msg}") from error
    except ValueError as error:
        raise InputError(f"{shown(path)}: its header is not sound: {error}") from error


def _entries(path: Path, found: object) -> dict[str, Mapping[str, object]]:
    if not isinstance(found, dict):
        raise InputError(f"{shown(path)}: its header is no JSON object")
    entries = {name: entry for name, entry in found.items() if name != "__metadata__"}
    if len(entries) > MOST_TENSORS:
        raise InputError(
            f"{shown(path)} has {len(entries):,} tensors: at most {MOST_TENSORS:,} are read"
        )
    for name, entry in entries.items():
        if not name or not isinstance(entry, dict):
            raise InputError(f"{shown(path)}: {name!a} is {_short(entry)}: expected a tensor")
        if set(entry) != {"dtype", "shape", "data_offsets"}:
            raise InputError(
                f"{shown(path)}: {name!a} has {_short(sorted(entry))}: expected dtype, shape and "
                "data_offsets"
            )
    return entries


def _tensor(path: Path, name: str, entry: Mapping[str, object], start: int) -> StoredTensor:
    dtype = entry["dtype"]
    if not isinstance(dtype, str) or dtype not in BITS:
        raise InputError(
            f"{shown(path)}: {name!a} has the type {_short(dtype)}, which is not known"
        )
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not _whole_numbers(shape) or len(shape) > _MOST_AXES:
        raise InputError(
            f"{shown(path)}: {name!a} has the shape {_short(shape)}: expected a list of lengths"
        )
    if not _whole_numbers(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise InputError(
            f"{shown(path)}: {name!a} has the offsets {_short(offsets)}: expected the first byte "
            "and that after the last"
        )
    bits = BITS[dtype]
    for side in shape:
        bits *= side
    first, last = offsets
    if bits != 8 * (last - first):
        raise InputError(
            f"{shown(path)}: {name!a} has the shape {_short(shape)} of {dtype} and "
            f"{_short(last - first)} bytes, which do not go together"
        )
    return StoredTensor(path, name, dtype, tuple(shape), start + first, start + last)


def _whole_numbers(found: object) -> TypeGuard[list[int]]:
    """Return whether it is a list of whole numbers that a file on a disk can have."""
    return isinstance(found, list) and all(type(x) is int and 0 <= x < 2**63 for x in found)


def _short(found: object) -> str:
    text = ascii(found)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _check_places(path: Path, tensors: list[StoredTensor], start: int, size: int) -> None:
    """Check that the tensors fill the file, one after another."""
    at = start
    for tensor in tensors:
        if tensor.start < at:
            raise InputError(f"{shown(path)}: {tensor.name!a} overlaps another tensor")
        if tensor.start > at:
            raise InputError(f"{shown(path)}: there is a gap before {tensor.name!a}")
        at = tensor.end
    if at > size:
        raise _truncated(path, at, size)
    if at < size:
        raise InputError(
            f"{shown(path)}: {size - at:,} bytes after the last tensor are no tensor's"
        )


def blocks(tensor: StoredTensor, size: int) -> Iterator[NDArray[np.floating]]:
    """Yield the values of a tensor in blocks of `size` values, the last one shorter.

    Short types come as float32, which holds all of their values.
    """
    width = BITS[tensor.dtype] // 8
    for raw in raw_blocks(tensor, size * width):
        yield _numbers(raw, tensor.dtype)


def raw_blocks(tensor: StoredTensor, n_bytes: int) -> Iterator[bytes]:
    """Yield the bytes of a tensor in blocks."""
    try:
        with tensor.path.open("rb") as file:
            file.seek(tensor.start)
            left = tensor.end - tensor.start
            while left:
                raw = file.read(min(n_bytes, left))
                if not raw:
                    raise InputError(f"{shown(tensor.path)} became shorter while it was read")
                left -= len(raw)
                yield raw
    except OSError as error:
        raise InputError(f"cannot read {shown(tensor.path)}: {error.strerror or error}") from error


def _numbers(raw: bytes, dtype: str) -> NDArray[np.floating]:
    if dtype == "BF16":
        return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
    if dtype in ("F8_E4M3", "F8_E5M2"):
        return eight_bits(dtype)[np.frombuffer(raw, np.uint8)]
    kind = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}[dtype]
    found = np.frombuffer(raw, kind)
    return found.astype(np.float32) if dtype == "F16" else found


@lru_cache(maxsize=2)
def eight_bits(dtype: str) -> NDArray[np.float32]:
    """Return the values of all 256 codes.

    >>> eight_bits("F8_E4M3")[[0x38, 0x7E, 0x01]].tolist(), eight_bits("F8_E5M2")[0x7B].item()
    ([1.0, 448.0, 0.001953125], 57344.0)
    """
    exponents, bias = (4, 7) if dtype == "F8_E4M3" else (5, 15)
    mantissas = 7 - exponents
    code = np.arange(256)
    sign = np.where(code >> 7, -1.0, 1.0)
    exponent, fraction = (code & 127) >> mantissas, (code & (2**mantissas - 1)) / 2**mantissas
    normal = np.ldexp(1 + fraction, exponent - bias)
    values = sign * np.where(exponent == 0, np.ldexp(fraction, 1 - bias), normal)
    if dtype == "F8_E4M3":
        values[(code & 127) == 127] = np.nan
    else:
        top = exponent == 31
        values[top] = np.where(fraction[top] == 0, sign[top] * np.inf, np.nan)
    return values.astype(np.float32)

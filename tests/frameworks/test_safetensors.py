"""The reader of safetensors: values of every type, and files that are not what they say."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file as save_numpy
from safetensors.torch import save_file as save_torch

from initrate.errors import InputError
from initrate.frameworks import _safetensors, _stored
from initrate.frameworks._safetensors import HEADER_LIMIT, blocks, read_header
from initrate.frameworks._stored import digest, stored_moments
from initrate.measure import moments
from initrate.rule import Slice

RANDOM = np.random.default_rng(5)
TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}


def whole(path: Path, name: str, size: int = 1000) -> np.ndarray:
    tensor = read_header(path)[name]
    return np.concatenate([*blocks(tensor, size)]).reshape(tensor.shape)


@pytest.mark.parametrize("word", TYPES)
def test_values_are_those_that_torch_reads(word: str, tmp_path: Path):
    values = (torch.randn(37, 11, dtype=torch.float64) * 3).to(TYPES[word])
    save_torch({"w": values, "other": torch.ones(3)}, tmp_path / "m.safetensors")
    assert read_header(tmp_path / "m.safetensors")["w"].dtype == word
    found = whole(tmp_path / "m.safetensors", "w", 100)
    assert (found == values.to(torch.float64).numpy()).all()
    assert found.dtype == (np.float64 if word == "F64" else np.float32)


@pytest.mark.parametrize("word", ["F8_E4M3", "F8_E5M2"])
def test_every_code_of_eight_bits(word: str):
    codes = torch.arange(256, dtype=torch.uint8)
    expected = codes.view(TYPES[word]).to(torch.float32).numpy()
    assert np.array_equal(_safetensors.eight_bits(word), expected, equal_nan=True)


@pytest.mark.parametrize(
    ("shape", "parts"),
    [
        ((96, 32), [Slice(0, 0, 32), Slice(0, 32, 32), Slice(0, 64, 32)]),
        ((32, 96), [Slice(1, 0, 32), Slice(1, 32, 64)]),
        ((96, 32), [Slice(0, 0, 4, 12), Slice(0, 4, 4, 12), Slice(0, 8, 4, 12)]),
        ((3, 8, 10), [Slice(1, 0, 4), Slice(1, 4, 4)]),
        ((24, 5), [None]),
        ((24, 5), [None, Slice(0, 1, 2, 3), Slice(1, 2, 1)]),
        ((7,), [Slice(0, 2, 3)]),
        ((), [None]),
        ((0, 4), [None]),
    ],
    ids=str,
)
@pytest.mark.parametrize("block", [16, 100, 10_000])
def test_parts_are_measured_in_blocks(
    shape: tuple, parts: list, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    values = RANDOM.normal(size=shape).astype(np.float32)
    save_numpy({"w": np.asarray(values)}, tmp_path / "m.safetensors")
    monkeypatch.setattr(_stored, "_BLOCK", block)
    tensor = read_header(tmp_path / "m.safetensors")["w"]
    for where, found in zip(parts, stored_moments(tensor, parts), strict=True):
        part = values
        if where is not None:
            inside = slice(where.start, where.start + where.length)
            part = values.reshape(where.split(shape))[(slice(None),) * (where.axis + 1) + (inside,)]
        exact = moments(np.ascontiguousarray(part))
        assert (found.size, found.lowest, found.highest) == (
            exact.size,
            exact.lowest,
            exact.highest,
        )
        assert found.total == pytest.approx(exact.total, abs=1e-9)
        assert found.squares == pytest.approx(exact.squares)


def test_a_tensor_is_never_in_memory_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    save_numpy({"w": np.ones((1000, 100), np.float32)}, tmp_path / "m.safetensors")
    sizes = []

    def watched(values: np.ndarray):
        sizes.append(values.size)
        return moments(values)

    monkeypatch.setattr(_stored, "moments", watched)
    monkeypatch.setattr(_stored, "_BLOCK", 5000)
    tensor = read_header(tmp_path / "m.safetensors")["w"]
    assert stored_moments(tensor)[0].size == 100_000
    assert max(sizes) <= 5000


def test_digests_tell_type_shape_and_bits_apart(tmp_path: Path):
    values = RANDOM.normal(size=(4, 6)).astype(np.float32)
    tensors = {
        "a": values,
        "same": values.copy(),
        "bit": np.nextafter(values, np.float32(9)),
        "shape": values.reshape(6, 4).copy(),
        "type": values.view(np.int32),
    }
    save_numpy(tensors, tmp_path / "m.safetensors")
    found = {
        name: digest(tensor) for name, tensor in read_header(tmp_path / "m.safetensors").items()
    }
    assert found["a"] == found["same"]
    assert len(set(found.values())) == 4


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def file_of(header: object, data: bytes = b"\0" * 8) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


DEEP = b'{"w":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
BAD = {
    "empty": (b"", "has 0 bytes"),
    "few bytes": (b"abc", "has 3 bytes"),
    "a pickle": (b"\x80\x02}q\x00.", "is a pickle"),
    "a zip of pickles": (b"PK\x03\x04" + b"\0" * 100, "is a pickle"),
    "text": (b"hello, this is a text", "is not a safetensors file"),
    "a header beyond all bounds": (struct.pack("<Q", 2**63) + b"{}", "header would have"),
    "a header above the limit": (
        struct.pack("<Q", HEADER_LIMIT + 1) + b"{}",
        "are read at most",
    ),
    "a header of one byte": (struct.pack("<Q", 1) + b"{", "header would have 1 bytes"),
    "a header that is cut": (struct.pack("<Q", 1000) + b'{"w":', "is truncated"),
    "a list": (file_of([1, 2]), "no JSON object"),
    "no JSON": (file_of(b"{nonsense}"), "is not JSON"),
    "no UTF-8": (file_of(b'{"\xff": 1}'), "UTF-8"),
    "nested": (file_of(DEEP), "nested too deeply"),
    "nan": (file_of(b'{"w": NaN}'), "NaN is no JSON number"),
    "a number of many digits": (file_of(b'{"w": ' + b"9" * 5000 + b"}"), "is not sound"),
    "a name twice": (
        file_of(b'{"w": %s, "w": %s}' % ((json.dumps(entry()).encode(),) * 2)),
        "'w' is given twice",
    ),
    "no entry": (file_of({"w": 3}), "'w' is 3: expected a tensor"),
    "a name of nothing": (file_of({"": entry()}), "'' is {"),
    "missing keys": (file_of({"w": {"dtype": "F32"}}), "expected dtype, shape and data_offsets"),
    "further keys": (file_of({"w": {**entry(), "code": 1}}), "expected dtype, shape"),
    "unknown type": (file_of({"w": entry("F31")}), "the type 'F31', which is not known"),
    "a type that is no text": (file_of({"w": entry([1])}), "the type [1]"),
    "a shape that is no list": (file_of({"w": entry(shape=2)}), "the shape 2"),
    "a negative side": (file_of({"w": entry(shape=[-2])}), "the shape [-2]"),
    "a side that is a fraction": (file_of({"w": entry(shape=[2.0])}), "the shape [2.0]"),
    "a side that is true": (file_of({"w": entry(shape=[True])}), "the shape [True]"),
    "a side beyond all bounds": (file_of({"w": entry(shape=[2**70])}), "the shape ["),
    "many axes": (file_of({"w": entry(shape=[1] * 65)}), "the shape ["),
    "sides that multiply beyond all bounds": (
        file_of({"w": entry(shape=[2**40] * 40)}),
        "do not go together",
    ),
    "offsets that are none": (file_of({"w": entry(offsets=[0])}), "the offsets [0]"),
    "offsets backwards": (file_of({"w": entry(offsets=[8, 0])}), "the offsets [8, 0]"),
    "negative offsets": (file_of({"w": entry(offsets=[-8, 0])}), "the offsets [-8, 0]"),
    "bytes that do not fit the shape": (file_of({"w": entry(shape=[3])}), "do not go together"),
    "beyond the file": (file_of({"w": entry(offsets=[0, 8])}, b"\0" * 4), "is truncated"),
    "overlap": (
        file_of({"a": entry(), "b": entry(offsets=[4, 12])}, b"\0" * 12),
        "'b' overlaps another tensor",
    ),
    "the same place twice": (file_of({"a": entry(), "b": entry()}), "overlaps another tensor"),
    "a gap": (file_of({"a": entry(offsets=[4, 12])}, b"\0" * 12), "a gap before 'a'"),
    "bytes of nothing": (file_of({"a": entry()}, b"\0" * 9), "1 bytes after the last tensor"),
}


@pytest.mark.parametrize("case", BAD)
def test_one_line_for_a_file_that_is_not_what_it_says(case: str, tmp_path: Path):
    content, words = BAD[case]
    (tmp_path / "m.safetensors").write_bytes(content)
    with pytest.raises(InputError) as raised:
        read_header(tmp_path / "m.safetensors")
    line = str(raised.value)
    assert words in line and "\n" not in line and len(line) < 400


def test_many_tensors_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_safetensors, "MOST_TENSORS", 2)
    save_numpy({str(k): np.zeros(1, np.float32) for k in range(3)}, tmp_path / "m.safetensors")
    with pytest.raises(InputError, match="has 3 tensors: at most 2 are read"):
        read_header(tmp_path / "m.safetensors")


def test_the_bytes_of_a_truncated_file_are_not_read(tmp_path: Path):
    save_numpy({"w": np.ones((100, 100), np.float32)}, tmp_path / "m.safetensors")
    content = (tmp_path / "m.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(content[:-1])
    with pytest.raises(InputError, match=r"cut\.safetensors is truncated: it has .* bytes"):
        read_header(tmp_path / "cut.safetensors")


def test_what_is_no_file(tmp_path: Path):
    with pytest.raises(InputError, match="cannot read"):
        read_header(tmp_path / "nowhere.safetensors")
    with pytest.raises(InputError, match="not a plain file"):
        read_header(tmp_path)


def test_a_header_of_128_bytes_is_no_pickle(tmp_path: Path):
    """Its length begins with the byte that a pickle begins with."""
    text = json.dumps({"w": entry()}).encode().ljust(128)
    (tmp_path / "m.safetensors").write_bytes(file_of(text))
    assert list(read_header(tmp_path / "m.safetensors")) == ["w"]


def test_metadata_is_no_tensor_and_an_empty_file_has_none(tmp_path: Path):
    save_numpy({"w": np.ones(3, np.float32)}, tmp_path / "m.safetensors", {"format": "pt"})
    assert list(read_header(tmp_path / "m.safetensors")) == ["w"]
    (tmp_path / "none.safetensors").write_bytes(file_of({}, b""))
    assert read_header(tmp_path / "none.safetensors") == {}


def test_integers_are_named_and_not_measured(tmp_path: Path):
    save_numpy({"i": np.ones(3, np.int64), "b": np.ones(3, bool)}, tmp_path / "m.safetensors")
    assert [tensor.measured for tensor in read_header(tmp_path / "m.safetensors").values()] == [
        False,
        False,
    ]

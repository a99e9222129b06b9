"""The cases: which model each needs."""

from __future__ import annotations

from initrate.errors import unknown

_PLAIN = (
    "an MLP of two maps, 32 inputs to 64 outputs and back, named so that the plan knows them as "
    "mlp_in and mlp_out, each with a bias, and a norm"
)

CASES: dict[str, str] = {
    "plain": _PLAIN,
    "twice": _PLAIN,
    "reordered": f"{_PLAIN}; made in the reverse order, with the same names",
    "float16": f"{_PLAIN}; all of it in float16",
    "bfloat16": f"{_PLAIN}; all of it in bfloat16",
    "frozen": f"{_PLAIN}; its first map is not trained",
    "meta": f"{_PLAIN}; of shapes alone, without memory",
    "sharded": f"{_PLAIN}; its tensors spread over as many devices as there are",
    "tied": "an embedding of 40 rows and 32 columns, which is the unembedding too",
    "fused": "an attention whose query, key and value are parts of one tensor, of 32 inputs",
    "expert": "three experts whose maps of 32 inputs to 64 outputs are one tensor",
    "parametrized": "a map of 32 inputs that is computed from other parameters, as by weight norm",
    "quantized": "a map that a quantized class holds (a stand-in will do), and a plain one",
    "shared_views": "two maps whose tensors share a part of their memory",
    "zero_size": "a tensor without values, and a plain map",
}


def cases() -> tuple[str, ...]:
    """Return the names of the cases.

    >>> "tied" in cases()
    True
    """
    return tuple(CASES)


def describe(case: str) -> str:
    """Return which model a case needs.

    >>> describe("zero_size")
    'a tensor without values, and a plain map'
    """
    if case not in CASES:
        raise unknown("case", case, CASES)
    return CASES[case]

"""The words of the page and what they mean: those that the study has, and no others."""

from __future__ import annotations

from initrate.report._source import Source, number

_RATE = (
    "The exponent in std = d_in^(−γ): every weight starts as N(0, d_in^(−2γ)). A larger γ "
    "means smaller weights. 0.5 is the usual LeCun or He size."
)
_UNSEEN = (
    "Two anchors that training never shows in this order. All that a model answers to it, "
    "it carries over from other pairs."
)
_COMPOSED = (
    "The composed answer: first one anchor's map, then the other's. The paper calls models "
    "that give it “reasoning” (arXiv 2405.05409)."
)
_MIRRORED = (
    "The mirrored answer: what the same two anchors mean in the order that was seen. The "
    "paper calls it “memorizing”"
)
_SEEN = (
    "Pairs that training shows, with keys held out from training. A run counts as fitted "
    "from 0.90 up; below, its map cell is hatched."
)
_PROBE = (
    "A second pair, unseen in both orders. A model that looks up unordered pairs fails it; "
    "one that composes and carries a single exception over does not."
)
_COVERS = (
    "How probable it is that the range of the seeds shown holds the median of all seeds there "
    "could be: 75 % for three seeds."
)
_CROSSED = (
    "Crossed seeds are not independent of each other: the range of their runs covers nothing "
    "that can be told."
)
_COMMUTES = (
    "The share of questions for which both orders of a pair get the same answer. Of runs that "
    "are not fitted it is not shown: one constant answer would count as agreement."
)
_SIZE = (
    "The std of a weight times the root of its input width: the size of a layer's output "
    "for inputs of size one. Equal γ at another width is another σ√d."
)
_BLOCK = (
    "At the start, the size of what a feed-forward block adds, divided by the size of what "
    "it is added to. Equal γ before and after a norm is not an equal network."
)


def glossary(source: Source) -> tuple[tuple[str, str], ...]:
    """Return (word, meaning) pairs for what stands on the page of this study."""
    probe = any(pair.probe for pair in source.pairs)
    mirrored = any(pair.mirrored_shift is not None for pair in source.pairs) or _has(
        source, "symmetric_accuracy"
    )
    several = source.seeds_in_words != "1 seed"
    composed = " A run is labelled composed only where it gives it to the probe too."
    look_up = "; the probe tells whether it is a look-up."
    rows = (row for of_cell in source.tensors.values() for row in of_cell)
    sized = any(number(row, "sigma_sqrt_d") is not None for row in rows)
    covers = ("crossed seeds", _CROSSED) if source.crossed else ("covers", _COVERS)
    words = (
        ("initialization rate γ", _RATE, True),
        ("unseen pair", _UNSEEN, True),
        ("composed (inferential)", _COMPOSED + composed * probe, True),
        ("mirrored (symmetric)", _MIRRORED + (look_up if probe else "."), mirrored),
        ("seen pairs", _SEEN, True),
        ("probe", _PROBE, probe),
        (*covers, several),
        ("commutes", _COMMUTES, _has(source, "commutes")),
        ("σ√d", _SIZE, sized),
        ("block-to-skip", _BLOCK, _has(source, "block_to_skip")),
    )
    return tuple((word, meaning) for word, meaning, there in words if there)


def _has(source: Source, column: str) -> bool:
    return any(number(row, column) is not None for row in source.cells)

from __future__ import annotations

from dataclasses import replace

import pytest

from initrate.report._glossary import glossary
from tests.report.synthetic import PHASE, synthetic


def without_probe(source):
    pairs = tuple(pair for pair in source.pairs if not pair.probe)
    return replace(source, pairs=pairs)


@pytest.mark.parametrize(
    ("source", "there", "missing"),
    [
        (synthetic(), {"covers", "commutes", "σ√d"}, {"probe", "mirrored (symmetric)"}),
        (synthetic(mirrored=True), {"probe", "mirrored (symmetric)"}, {"commutes"}),
        (without_probe(synthetic(mirrored=True)), {"mirrored (symmetric)"}, {"probe"}),
        (synthetic(n_seeds=1), {"unseen pair"}, {"covers", "crossed seeds"}),
        (
            synthetic(axes=PHASE[:1], crossed={"init": (1, 2), "order": (1, 2)}),
            {"crossed seeds"},
            {"covers"},
        ),
        (synthetic(share_done=0), {"seen pairs"}, {"commutes", "block-to-skip", "σ√d"}),
    ],
)
def test_the_words_are_those_of_the_study(source, there, missing):
    words = dict(glossary(source))
    assert there <= words.keys()
    assert not missing & words.keys()
    named = " ".join(words.values())
    assert ("probe" in named) == any(pair.probe for pair in source.pairs)

"""The section of the model card."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

from initrate.errors import InputError
from initrate.frameworks.huggingface import write_card
from initrate.frameworks.huggingface._card import BEGIN, END
from initrate.frameworks.torch import apply
from initrate.rule import Rule, named_rule


def test_a_card_is_made_where_there_is_none(tmp_path: Path):
    path = write_card(tmp_path / "new", Rule(gamma=0.8), 3)
    text = path.read_text()
    assert path == tmp_path / "new" / "README.md"
    assert text.startswith(f"{BEGIN}\n## Initialization\n")
    assert text.endswith(f"{END}\n")
    assert "γ = 0.8" in text
    assert "seed 3" in text


def test_all_else_is_kept_and_the_section_is_replaced_where_it_stands(tmp_path: Path):
    path = tmp_path / "README.md"
    head = "---\nlicense: mit\n---\n# A model\n\nOf ours."
    path.write_text(head)
    write_card(tmp_path, Rule(gamma=0.8), 3)
    first = path.read_text()
    assert first.startswith(f"{head}\n\n{BEGIN}")
    path.write_text(f"{first}\n## Below\n")
    write_card(tmp_path, named_rule("gpt2"), 4)
    second = path.read_text()
    assert second.startswith(f"{head}\n\n{BEGIN}")
    assert second.endswith(f"{END}\n\n## Below\n")
    assert second.count(BEGIN) == 1
    assert "`gpt2`" in second
    assert "seed 4" in second
    assert "γ = 0.8" not in second
    write_card(tmp_path, named_rule("gpt2"), 4)
    assert path.read_text() == second


def test_the_audit_gives_rates_and_findings(tmp_path: Path):
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    audit = apply(model, gamma=0.8)
    text = write_card(tmp_path, Rule(gamma=0.8), 0, audit).read_text()
    rates = audit.gamma_by_role()
    assert rates
    for role, rate in rates.items():
        assert f"| {role.replace('|', ' or ')} | {rate:.3f} |" in text
    assert "Findings: none." in text
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


@pytest.mark.parametrize(
    "text", [BEGIN, END, f"{END} {BEGIN}", f"{BEGIN} {END} {BEGIN} {END}", f"{BEGIN} {END} {END}"]
)
def test_marks_that_do_not_belong_together_are_refused(text: str, tmp_path: Path):
    path = tmp_path / "README.md"
    path.write_text(text)
    with pytest.raises(InputError, match="do not belong together"):
        write_card(tmp_path, Rule(gamma=0.8), 0)
    assert path.read_text() == text


def test_what_is_no_text_is_refused(tmp_path: Path):
    (tmp_path / "README.md").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not text in UTF-8"):
        write_card(tmp_path, Rule(gamma=0.8), 0)
    with pytest.raises(InputError, match="is a folder"):
        (tmp_path / "other" / "README.md").mkdir(parents=True)
        write_card(tmp_path / "other", Rule(gamma=0.8), 0)

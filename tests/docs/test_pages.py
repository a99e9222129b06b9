"""README and docs hold what they say: examples run, commands are valid, tables follow the code."""

from __future__ import annotations

import ast
import doctest
import re
import shlex
from pathlib import Path

import pytest

from docs.tables import TABLES, renewed
from initrate import cli
from initrate.cli._boundary import Boundary
from initrate.cli._phase import Phase
from initrate.cli._run import Run
from initrate.study import load_study

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [page.name for page in PAGES]


def fences(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def console_lines() -> list[tuple[str, str]]:
    lines = [
        (page.name, line.split("#")[0].strip())
        for page in PAGES
        for fence in fences(page, "console")
        for line in fence.splitlines()
    ]
    return [line for line in lines if line[1]]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_examples_give_what_they_show(page: Path):
    failed, _ = doctest.testfile(str(page), module_relative=False)
    assert failed == 0


def test_some_page_has_examples():
    assert sum("\n>>> " in page.read_text() for page in PAGES) >= 3


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_names_in_python_examples_are_public(page: Path):
    for fence in fences(page, "python"):
        if ">>> " in fence:
            continue
        for node in ast.walk(ast.parse(fence)):
            if isinstance(node, ast.ImportFrom):
                module = __import__(str(node.module), fromlist=["__all__"])
                assert {alias.name for alias in node.names} <= set(module.__all__)


@pytest.mark.parametrize(("page", "line"), console_lines())
def test_commands_are_valid(page: str, line: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    words = shlex.split(line)
    if words[0] == "make":
        targets = [word for word in words[1:] if "=" not in word]
        makefile = (ROOT / "Makefile").read_text()
        assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
    elif words[0] == "initrate":
        command = cli.parsed(words[1:])
        if isinstance(command, Phase | Run):
            assert command.config().axes
        if isinstance(command, Boundary):
            assert command.search().rows
    else:
        assert (ROOT / words[0]).exists()


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_study_files_can_be_read(page: Path):
    for fence in fences(page, "toml"):
        assert load_study(fence).name


@pytest.mark.parametrize("name", TABLES)
def test_tables_follow_the_code(name: str):
    page, text = renewed(name)
    assert page.read_text() == text, "run: python docs/tables.py"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_every_option_of_the_json_is_told():
    from initrate.cli._results import CELL_KEYS

    text = (ROOT / "docs" / "command-line.md").read_text()
    assert all(f"`{key}`" in text for key in CELL_KEYS)

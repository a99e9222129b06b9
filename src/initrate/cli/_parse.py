"""From arguments to a command: typed by tyro, wrong ones answered in one line."""

from __future__ import annotations

import ast
import contextlib
import difflib
import io
import itertools
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from typing import TypeVar, get_type_hints

import tyro

from initrate.cli._output import NARROWEST
from initrate.errors import InputError, unknown

C = TypeVar("C")


def parse(command: type[C], arguments: Sequence[str], *, prog: str) -> C:
    """Return the command that the arguments say; `--help` is printed and ends the process.

    >>> from initrate.cli._list import List
    >>> parse(List, ["rules", "--json"], prog="initrate list")
    List(names='rules', json=True)
    """
    _refuse_nothing(arguments)
    _refuse_twice(command, arguments)
    box = io.StringIO()
    try:
        with contextlib.redirect_stderr(box), _wide_enough():
            parsed, rest = tyro.cli(command, args=arguments, prog=prog, return_unknown_args=True)
    except SystemExit as end:
        if not end.code:
            raise
        # An option that is not known upsets the reading of what follows it: it is named first.
        known = _options(command, prog)
        ended = itertools.takewhile(lambda word: word != "--", arguments)
        strange = [word for word in ended if _looks_like_an_option(word)]
        for word in strange:
            if word.split("=")[0].replace("_", "-") not in known:
                raise InputError(_not_known(word, command, prog=prog)) from None
        raise _complaint(box.getvalue(), arguments, prog=prog) from None
    if rest:
        raise InputError(_not_known(rest[0], command, prog=prog))
    return parsed


@contextlib.contextmanager
def _wide_enough() -> Iterator[None]:
    """Tell tyro of a terminal wide enough for its words: in a narrow one it shows none at all."""
    if shutil.get_terminal_size().columns >= NARROWEST:
        yield
        return
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(NARROWEST)
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def _refuse_nothing(arguments: Sequence[str]) -> None:
    """Refuse "None" and empty words: tyro reads the one, and some commands the other, as absent."""
    for k, argument in enumerate(arguments):
        name, sign, word = argument.partition("=")
        if not (name.startswith("--") and sign):
            before = arguments[k - 1] if k else ""
            is_value = before.startswith("--") and "=" not in before
            name, word = before if is_value else "argument", argument
        if word == "None" or not word.strip():
            shown = "empty" if not word.strip() else f"{word!r}"
            is_path = word == "None" and name in ("--out", "argument")
            path = "; a path of that name is ./None" if is_path else ""
            raise InputError(
                f"{name} is {shown}: expected a value; leave it out for what holds without it{path}"
            )


def _refuse_twice(command: type, arguments: Sequence[str]) -> None:
    """Refuse an option that is given twice: the last one would win silently."""
    seen: dict[str, str] = {}
    repeatable = _repeatable(command)
    for k, argument in enumerate(itertools.takewhile(lambda word: word != "--", arguments)):
        if not argument.startswith("--"):
            continue
        name, sign, word = argument.partition("=")
        name = name.replace("_", "-")
        after = arguments[k + 1] if k + 1 < len(arguments) else ""
        said = word if sign else "" if after.startswith("--") else after
        if name in seen and name not in repeatable:
            words = f" ({seen[name]} and {said})" if seen[name] and said else ""
            raise InputError(f"{name} is given twice{words}: give it once")
        seen[name] = said


def _repeatable(command: type) -> set[str]:
    """The options of a command that may be given any number of times."""
    found: set[str] = set()
    for field, hint in get_type_hints(command, include_extras=True).items():
        marks = getattr(hint, "__metadata__", ())
        if tyro.conf.UseAppendAction in marks:
            names = [mark.name for mark in marks if getattr(mark, "name", None)]
            found.add("--" + (names[0] if names else field).replace("_", "-"))
    return found


def _not_known(argument: str, command: type, *, prog: str) -> str:
    if not argument.startswith("-"):
        return f"argument {argument!r} is one too many; see {prog} --help"
    options = _options(command, prog)
    near = difflib.get_close_matches(argument.split("=")[0], options, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown option {argument!r}: {hint}see {prog} --help"


def _options(command: type, prog: str) -> list[str]:
    """Return the options that the command's help names."""
    help_text = io.StringIO()
    quiet = contextlib.redirect_stdout(help_text)
    with quiet, _wide_enough(), contextlib.suppress(SystemExit):
        tyro.cli(command, args=["--help"], prog=prog)
    words = help_text.getvalue().replace(",", " ").split()
    return list(dict.fromkeys(word for word in words if word.startswith("--")))


def _complaint(box: str, arguments: Sequence[str], *, prog: str) -> InputError:
    sentence = _sentence(box)
    choice = re.match(
        r"invalid choice '(.*)' for argument '(.*)'\. Expected one of (\(.*\))", sentence
    )
    if choice:
        found, argument, known = choice.groups()
        names = sorted(name for name in ast.literal_eval(known) if name != "None")
        return unknown(argument, found, names)
    missing = re.match(r"Missing from .*?: (\{[^}]*\}|\S+)", sentence)
    if missing:
        word = missing.group(1)
        one = f"one of {', '.join(word.strip('{}').split(','))}" if "{" in word else word
        return InputError(f"{prog} needs {one}; see {prog} --help")
    number = re.match(r"Error parsing (\S+): ", sentence)
    valueless = [
        word
        for word, after in itertools.pairwise(arguments)
        if word.startswith("--") and "=" not in word and after.startswith("-")
    ]
    if not number and valueless:
        word = valueless[0]
        return InputError(f"{word} has no value: expected one after it; see {prog} --help")
    if not number and (not arguments or arguments[-1].startswith("--")):
        last = arguments[-1] if arguments else "it"
        return InputError(f"{last} has no value: expected one after it; see {prog} --help")
    if not number and not sentence.startswith("Error parsing"):
        # What is left are words of the parser about itself.
        return InputError(f"the options of {prog} cannot be read; see {prog} --help")
    return InputError(f"{sentence.removeprefix('Error parsing ')}; see {prog} --help")


def _looks_like_an_option(word: str) -> bool:
    return len(word) > 1 and word.startswith("-") and not _NUMBER.match(word) and word != "--"


_NUMBER = re.compile(r"-[0-9.]")


def _sentence(box: str) -> str:
    """The words of tyro's framed message, up to its first inner line, on one line."""
    # Where the output has no Unicode, the frame is blank and the title has a line of its own.
    lines = [line.strip(" │") for line in box.splitlines() if not line.startswith(("╭", "╰"))]
    if len(lines) > 1 and _is_rule(lines[1]):
        lines = lines[2:]
    words = itertools.takewhile(lambda line: not _is_rule(line), lines)
    return " ".join(" ".join(words).split()).rstrip(".")


def _is_rule(line: str) -> bool:
    return len(line) > 2 and not line.strip("─-")

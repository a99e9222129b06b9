"""The entry point: finds the command, runs it, and turns errors into a line and an exit code."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from initrate.cli._output import open_missing_streams, tell, write
from initrate.errors import InputError, unknown

GOOD, FINDING, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


class Command(Protocol):
    """What a command is: options as fields, and a run that returns the exit code."""

    def run(self) -> int: ...


class _Entry(NamedTuple):
    module: str
    name: str
    line: str


# Lines of help stand here, so that `initrate --help` loads no command and no parser.
COMMANDS = {
    "phase": _Entry("_phase", "Phase", "train the diagram of rate and depth, and write its report"),
    "run": _Entry("_run", "Run", "train any grid: a study file, or a preset"),
    "boundary": _Entry("_boundary", "Boundary", "find where a label begins, with few of the cells"),
    "report": _Entry("_report", "Report", "write the report of a study folder, or of the demo"),
    "plan": _Entry("_plan", "Plan", "show what a rule does with every tensor of a model"),
    "audit": _Entry("_audit", "Audit", "measure the weights of a model, against a rule or none"),
    "diff": _Entry("_diff", "Diff", "compare two models tensor by tensor"),
    "bench": _Entry("_bench", "Bench", "measure how fast this machine trains, beside other ways"),
    "list": _Entry("_list", "List", "show names: rules, presets, shapes, tasks, fields"),
}

_LAB = frozenset({"jinja2", "matplotlib", "plotly", "polars", "safetensors", "scipy", "torch"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code: 0 good, 1 finding or failed cell, 2 bad input, 130 interrupted.

    >>> main(["--version"])
    initrate 0.1.0
    0
    """
    open_missing_streams()
    try:
        try:
            return _dispatch(list(sys.argv[1:] if arguments is None else arguments))
        finally:
            write("", end="")  # What is still in the buffer fails here, and not at exit.
    except InputError as error:
        return _complain(str(error), BAD_INPUT)
    except ModuleNotFoundError as error:
        if error.name not in _LAB:
            raise
        return _complain(
            f"this command needs {error.name}, which is not installed: pip install 'initrate[lab]'",
            BAD_INPUT,
        )
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except BrokenPipeError:
        return GOOD  # Who read the help has gone.


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        write(_help())
        return GOOD if arguments else BAD_INPUT
    if arguments[0] == "--version":
        from initrate import __version__

        write(f"initrate {__version__}")
        return GOOD
    return parsed(arguments).run()


def parsed(arguments: Sequence[str]) -> Command:
    """Return the command that the arguments say, ready to be run.

    >>> parsed(["list", "rules"])
    List(names='rules', json=False)
    """
    name, *rest = arguments
    if name not in COMMANDS:
        raise unknown("command", name, COMMANDS)
    entry = COMMANDS[name]
    command = getattr(importlib.import_module(f"initrate.cli.{entry.module}"), entry.name)

    from initrate.cli._parse import parse

    return parse(command, rest, prog=f"initrate {name}")


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {entry.line}" for name, entry in COMMANDS.items()]
    return "\n".join(
        [
            "usage: initrate COMMAND [OPTIONS]",
            "",
            "What the initialization rate gamma (std = d_in^-gamma) decides.",
            "",
            *lines,
            "",
            "initrate COMMAND --help tells the options of a command; --json is one of each.",
            "Exit codes: 0 good, 1 finding or failed cell, 2 bad input, 130 interrupted.",
        ]
    )


def _complain(message: str, code: int) -> int:
    tell(f"error: {' '.join(message.split())}")
    return code

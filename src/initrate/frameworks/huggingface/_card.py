"""A section of the model card: by what rule the weights were drawn, and what was measured."""

from __future__ import annotations

import json
from pathlib import Path

from initrate.errors import InputError
from initrate.files import make_folder, read_bounded, shown, write_whole
from initrate.rule import Audit, Rule

CARD = "README.md"
BEGIN, END = "<!-- initrate: begin -->", "<!-- initrate: end -->"
_LIMIT = 4_000_000


def card_section(rule: Rule, seed: int, audit: Audit | None) -> str:
    """Return the section, with the marks that it is found by again.

    >>> print(card_section(Rule(gamma=0.8), 0, None).splitlines()[1])
    ## Initialization
    """
    gamma = "" if rule.gamma is None else f", γ = {rule.gamma:g} (std = d_in^−γ)"
    lines = [
        BEGIN,
        "## Initialization",
        "",
        f"The weights were drawn by the rule `{rule.name}`{gamma}, seed {seed}, with initrate.",
    ]
    rates = {} if audit is None else audit.gamma_by_role()
    if rates:
        lines += ["", "| role | measured γ |", "|---|---|"]
        # A bar would end the cell: `query|key` is one role of two.
        lines += [f"| {role.replace('|', ' or ')} | {rate:.3f} |" for role, rate in rates.items()]
    if audit is not None:
        found = "; ".join(str(finding) for finding in audit.findings)
        lines += ["", f"Findings: {found or 'none'}."]
    plain = json.dumps({"rule": rule.to_dict(), "seed": seed}, ensure_ascii=False)
    lines += ["", "```json", plain, "```", END]
    return "\n".join(lines)


def write_card(folder: Path | str, rule: Rule, seed: int, audit: Audit | None = None) -> Path:
    """Write the section into the README.md of a model's folder, and return the file's path.

    An older section is replaced where it stands; all else of the file is kept. A file that is not
    there is made. It is written whole.
    """
    path = Path(folder) / CARD
    section = card_section(rule, seed, audit)
    text = ""
    if path.exists():
        try:
            text = read_bounded(path, _LIMIT).decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{shown(path)} is not text in UTF-8: byte {error.start}") from error
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if begin and end and BEGIN not in after and END not in after:
        text = f"{before}{section}{after}"
    elif begin or END in text:
        raise InputError(
            f"{shown(path)} has marks of initrate that do not belong together: expected one "
            f"{BEGIN} before one {END}; delete them"
        )
    else:
        space = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        text = f"{text}{space}{section}\n"
    make_folder(path.parent)
    write_whole(path, text.encode("utf-8"))
    return path

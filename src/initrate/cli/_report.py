"""`initrate report`: the report of a study folder, also of one that is being trained."""

from __future__ import annotations

import json as json_module
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from initrate.cli._options import Switch, optional
from initrate.cli._output import write
from initrate.errors import InputError, StoreError
from initrate.files import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Write the report of a study folder: report.html and figures/, both complete in themselves.

    It may be written while the study runs; it then shows what is done.
    """

    study: Annotated[tyro.conf.Positional[Path | None], optional("DIR", unless="none")] = None
    """The folder of the study."""
    demo: Switch = False
    """The small trained study that comes with initrate, in place of a folder."""
    out: Annotated[Path | None, optional("DIR", unless="the study's folder")] = None
    """Where to write to."""
    json: Switch = False
    """Print JSON with the paths in place of a line."""

    def run(self) -> int:
        """Write the report and return the exit code."""
        if (self.study is None) != self.demo:
            raise InputError("report needs one of the two: the folder of a study, or --demo")
        from initrate.report import build_report, open_demo
        from initrate.study import Store, folder_path

        if self.study is not None:
            _not_a_folder_of_studies(folder_path(self.study))
        store = open_demo() if self.study is None else Store.open(self.study)
        out = None if self.out is None else folder_path(self.out)
        if self.demo and out is None:
            out = Path("initrate-demo")
        page = build_report(store, out)
        if self.json:
            write(json_module.dumps({"schema": 1, "study": str(store.path), "report": str(page)}))
        else:
            write(f"report: {shown(page)}")
        return 0


def _not_a_folder_of_studies(folder: Path) -> None:
    """Refuse a folder that holds studies and is none, as `studies` is, and name some of them."""
    from initrate.study import reading

    with reading(folder):
        if (folder / "study.json").exists() or not folder.is_dir():
            return
        found = sorted(path.parent for path in folder.glob("*/study.json"))
    if found:
        names = ", ".join(shown(path.name) for path in found[:5]) + (
            ", …" if len(found) > 5 else ""
        )
        n_studies = "a study" if len(found) == 1 else f"{len(found)} studies"
        raise StoreError(
            f"{shown(folder)} holds {n_studies} and is none itself ({names}): name one, as in "
            f"initrate report {shown(found[0])}"
        )

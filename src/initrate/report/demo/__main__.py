"""Training the demo anew: `python -m initrate.report.demo DIR`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from initrate.files import write_whole
from initrate.report.demo import demo_config


def main() -> None:
    """Train the demo study into the folder that the command line names, ready to be shipped."""
    from initrate.study import run

    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m initrate.report.demo DIR")
    folder = Path(sys.argv[1])
    store = run(demo_config(), folder, threads=1)
    print(store.cells().select("gamma", "label", "seen_accuracy", "inferential_accuracy"))
    strip(folder)


def strip(folder: Path) -> None:
    """Take out of a finished study what says whose machine trained it, and what can be remade."""
    from polars import Utf8, lit, read_parquet

    from initrate.study._tables import parquet

    environment = json.loads((folder / "environment.json").read_text("utf-8"))
    for session in environment["sessions"]:
        session |= {"host": "", "system": ""}
    write_whole(folder / "environment.json", (json.dumps(environment, indent=1) + "\n").encode())
    for timing in (folder / "timing").glob("*.parquet"):
        table = read_parquet(timing).with_columns(lit("").cast(Utf8).alias("host"))
        write_whole(timing, parquet(table))
    for remade in ("cells.parquet", "running/lock"):
        (folder / remade).unlink(missing_ok=True)


if __name__ == "__main__":
    main()

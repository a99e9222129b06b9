"""Training the demo anew: `python -m initrate.report.demo DIR`."""

from __future__ import annotations

import sys
from pathlib import Path

from initrate.report.demo import demo_config


def main() -> None:
    """Train the demo study into the folder that the command line names."""
    from initrate.study import run

    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m initrate.report.demo DIR")
    store = run(demo_config(), Path(sys.argv[1]), threads=1)
    print(store.cells().select("gamma", "label", "seen_accuracy", "inferential_accuracy"))


if __name__ == "__main__":
    main()

"""Read a study without the rights of root: `python -m tests.study.unreadable FOLDER`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from initrate.errors import StoreError
from initrate.study import Store
from initrate.study._tables import polars

NOBODY = 65534


def main(folder: Path) -> None:
    """Read all tables, and print what was said."""
    polars()  # What is imported later could not be read any more.
    if os.geteuid() == 0:
        os.setuid(NOBODY)
    try:
        store = Store.open(folder)
        store.cells()
        store.timing()
    except StoreError as error:
        print(error)
        sys.exit(2)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Run the small study where the system refuses writes, and print what was said.

`python -m tests.study.refused_writes FOLDER nobody|BYTES`: without the rights of root, or with a
limit on the size of files.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from initrate.errors import StoreError
from initrate.study import run
from initrate.study._tables import polars
from tests.study import standin
from tests.study.conftest import small_study

NOBODY = 65534


def main(folder: Path, how: str) -> None:
    """Run, refused."""
    polars()  # What is imported later could not be read any more.
    if how == "nobody":
        if os.geteuid() == 0:
            os.setuid(NOBODY)
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(how), int(how)))
    try:
        run(small_study(), folder, threads=2, train=standin.train)
    except StoreError as error:
        print(error)
        sys.exit(2)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

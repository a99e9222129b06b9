"""Run the small study in a process that kills itself at a named place.

`python -m tests.study.kill_places FOLDER PLACE`; nothing of Python's is cleaned up, as when the
power goes.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from initrate.study import BucketDone, BucketProgress, Event, _part, _runner, run
from tests.study import standin
from tests.study.conftest import small_study


def die() -> None:
    """End this process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def main(folder: Path, place: str) -> None:
    """Run until the place."""
    n_done = 0

    def on_event(event: Event) -> None:
        nonlocal n_done
        n_done += isinstance(event, BucketDone)
        training = isinstance(event, BucketProgress) and event.step == 10
        if (place == "training" and training) or (place == "after one" and n_done == 1):
            die()

    if place == "before the part":
        _runner.write_part = lambda *a, **k: die()
    if place == "inside the part":
        parquet, written = _part.parquet, []

        def parquet_or_die(table: object) -> bytes:
            written.append(table)
            if len(written) == 3:
                die()
            return parquet(table)  # pyright: ignore[reportArgumentType]

        _part.parquet = parquet_or_die
    run(small_study(), folder, threads=2, on_event=on_event, train=standin.train)
    sys.exit(3)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

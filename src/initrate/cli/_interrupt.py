"""What a command does on Ctrl-C, and where it is told to end."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import AbstractContextManager

from initrate import study
from initrate.cli._output import tell


def stop_on_signal() -> AbstractContextManager[Callable[[], bool]]:
    """Return a block that yields a function which tells whether the user asked to stop."""
    return study.stop_on_signal(tell, (signal.SIGINT, signal.SIGTERM))

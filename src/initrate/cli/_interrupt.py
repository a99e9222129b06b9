"""Ctrl-C: asked once, the study stops at the next step and keeps all; asked twice, at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from initrate.cli._output import tell

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether the user asked to stop; a second asking interrupts.

    Elsewhere than in the main thread, which alone hears signals, nobody ever asks.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def on_signal(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        tell("stopping at the next step; once more to stop at once")

    before = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Ctrl-C: asked once, the study stops at the next step and keeps all; asked twice, at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_signal(
    tell: Callable[[str], None], numbers: Sequence[signal.Signals] = (signal.SIGINT,)
) -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether the user asked to stop; a second asking interrupts.

    `tell` is called with a line at the first asking. Elsewhere than in the main thread, which alone
    hears signals, nobody ever asks.
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

    before = {number: signal.signal(number, on_signal) for number in numbers}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            # What was not set from Python is None, and cannot be set again from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

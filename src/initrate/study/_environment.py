"""Where and with what a study was run: the one place, beside timing, for host and date."""

from __future__ import annotations

import os
import platform
import socket
import sys
from datetime import UTC, datetime
from importlib import metadata

from initrate import __version__

_PACKAGES = ("numpy", "torch", "polars", "safetensors")


def environment() -> dict[str, object]:
    """Return the host, the time, the processor and the versions that a session runs with.

    >>> environment()["python"] == platform.python_version()
    True
    """
    return {
        "began": now(),
        "host": socket.gethostname(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "initrate": __version__,
        "packages": {name: version(name) for name in _PACKAGES},
    }


def now() -> str:
    """Return the time as text, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def version(package: str) -> str | None:
    """Return the version of an installed package, or None.

    >>> version("a-package-that-is-not-there") is None
    True
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None

"""Frameworks that are not installed: one line that names the extra."""

from __future__ import annotations

import importlib
from types import ModuleType

from initrate.errors import InputError


def needed(module: str, *, extra: str, for_what: str) -> ModuleType:
    """Return a module that an extra brings, imported.

    >>> needed("json", extra="hf", for_what="a table").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise InputError(
            f"{for_what} needs {module}, which is not installed: pip install 'initrate[{extra}]'"
        ) from error

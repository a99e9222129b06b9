"""The command line: one file a command; errors become one line and an exit code here alone."""

from initrate.cli._main import main, parsed

__all__ = ["main", "parsed"]

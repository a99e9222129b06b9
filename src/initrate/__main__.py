"""`python -m initrate` is the command `initrate`."""

import sys

from initrate.cli import main

if __name__ == "__main__":
    sys.exit(main())

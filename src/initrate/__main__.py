"""`python -m initrate` is the command `initrate`."""

import sys

if __name__ == "__main__":
    try:
        from initrate.cli import main

        code = main()
    except KeyboardInterrupt:  # While the modules are loaded; later the command answers itself.
        code = 130
    sys.exit(code)

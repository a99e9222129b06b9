"""How many labels another execution plan changes, beside how many another seed does.

initrate phase --preset laptop --out studies/a
initrate phase --preset laptop --threads 1 --out studies/b
python -m benchmarks.agreement studies/a studies/b
"""

from __future__ import annotations

import sys
from pathlib import Path

import tyro

from initrate.errors import InputError
from initrate.study import Store, agreement


def main(first: tyro.conf.Positional[Path], second: tyro.conf.Positional[Path]) -> int:
    """Print how far the labels of the same cells agree in two study folders.

    Args:
        first: A study folder.
        second: A folder with the same cells, trained under another plan.
    """
    try:
        found = agreement(Store.open(first), Store.open(second))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"another plan: {found.changed} of {found.n_cells} labels differ, {found.share:.1%}")
    if found.share_between_seeds is not None:
        print(
            f"another seed: {found.changed_between_seeds} of {found.n_seed_pairs} pairs differ, "
            f"{found.share_between_seeds:.1%}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main))

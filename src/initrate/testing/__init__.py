"""The suite that every adapter of a framework passes: the same rule, the same values, no surprise.

An adapter is a class with five methods (`Adapter`). It says by name which cases its framework has
nothing for, and why; no case is left out in silence. With pytest it is one function:

    import pytest
    from initrate.testing import cases, check

    @pytest.mark.parametrize("case", cases())
    def test_my_framework_conforms(case):
        check(MyAdapter(), case)

`describe(case)` says which model a case needs.
"""

from initrate.testing._adapter import Adapter, ConformanceError
from initrate.testing._cases import cases, describe
from initrate.testing._check import check

__all__ = ["Adapter", "ConformanceError", "cases", "check", "describe"]

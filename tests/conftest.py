"""What holds for all tests."""

from __future__ import annotations

import os

# Threads that wait without spinning: on a machine of few cores, tests of two threads that spin
# slow each other many times over. To be set before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

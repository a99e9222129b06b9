"""What holds for all tests and for the examples in docstrings."""

from __future__ import annotations

import os

# To be set before keras and jax are imported: Keras would else look for TensorFlow.
os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

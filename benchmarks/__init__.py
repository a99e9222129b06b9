"""Benchmarks of the training engine, and the plain way that it is measured against."""

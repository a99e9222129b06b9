"""Benchmarks: the long form of `initrate bench`, and what else is measured now and then."""

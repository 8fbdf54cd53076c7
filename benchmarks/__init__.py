"""Measures speed and size of the real program. Run ``python -m benchmarks``."""

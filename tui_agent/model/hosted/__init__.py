"""Runs litellm in a separate process, for providers whose format has no module in ``wires``."""

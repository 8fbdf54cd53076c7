"""tui-agent: a terminal coding agent whose context window is visible, navigable and reversible."""

__version__ = "0.1.0"

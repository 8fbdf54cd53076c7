"""Tells in the environment of every process started here what it belongs to; its children inherit that."""

from collections.abc import Mapping

MARK = "TUI_AGENT_CALL"
"""Environment variable that tells which call a process belongs to."""

OWN = "own"
"""The mark of what this program starts for its own sake: it is left alone when a call's processes are ended."""


def own(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with the mark of what this program starts for its own sake."""
    return {**environment, MARK: OWN}

"""Rewrites advice in messages, which names slash commands, for users of a shell."""

import re
from typing import Final

from tui_agent.lazy import LazyPattern

_IN_SHELL: Final = {
    "login": "tui-agent login",
    "model": "--model",
    "settings": "config.toml",
    "trust": "--trust",
}
"""What to use in a shell instead of a slash command that asks or needs the screen, by its name."""

_COMMAND: Final = LazyPattern(
    r"""
      /login\ \(or\ (?P<login>tui-agent\ login\ [^)\s]+)\)
    | /model\ or\ (?=--model)
    | /trust\ asks\ you,\ (?=--trust)
    | (?<![^\s(“])/(?P<name>login|model|settings|trust)(?=[\s.,;:)”]|\Z)
    """,
    re.VERBOSE,
)


def in_shell(message: str) -> str:
    """Return a message with slash commands replaced by options or commands of the shell.

    Only commands that don't work without a screen are replaced; others can be sent with ``-p``.
    """
    return _COMMAND.sub(_replaced, message)


def _replaced(found: re.Match[str]) -> str:
    if found["login"]:
        return found["login"]
    return _IN_SHELL[found["name"]] if found["name"] else ""

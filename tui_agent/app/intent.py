"""Parses what the user sends: a message for the model, a ``/command`` or a ``!shell command``."""

import re

from tui_agent.lazy import frozen

_COMMAND = re.compile(r"/([A-Za-z][\w:-]*)(?:\s+(.*))?", re.DOTALL)
_SKILL = re.compile(r"\$([A-Za-z][\w:-]*)(?:\s+(.*))?", re.DOTALL)


@frozen
class MessageIntent:
    """A message for the model."""

    text: str


@frozen
class CommandIntent:
    """The command ``/name arguments``; ``name`` is in lower case and without the slash."""

    name: str
    arguments: str


@frozen
class ShellIntent:
    """A shell command ``!command``; for ``!!command`` (``excluded``), the model sees no output."""

    command: str
    excluded: bool


Intent = MessageIntent | CommandIntent | ShellIntent


def parse(text: str) -> Intent | None:
    """Return the intent of a text in the prompt; None if it is empty, or a ``!`` without a command.

    A slash begins a command only as the very first character; text that begins with a path, such as
    ``/usr/lib is full``, is a message. A single question mark means ``/help``.
    """
    stripped = text.strip()
    if not stripped:
        return None
    if stripped == "?":
        return CommandIntent("help", "")
    if text.startswith("!"):
        excluded = text.startswith("!!")
        command = text[2 if excluded else 1 :].strip()
        if command:
            return ShellIntent(command, excluded)
        return None
    if (match := _COMMAND.fullmatch(text.rstrip())) and "/" not in match[1]:
        return CommandIntent(match[1].lower(), (match[2] or "").strip())
    return MessageIntent(stripped)


def named_skill(text: str) -> CommandIntent | None:
    """Return the command for a text that uses a skill as in Codex: ``$name task``.

    Returns None for other texts. Doesn't check whether there is a skill with this name.
    """
    match = _SKILL.fullmatch(text.rstrip())
    if match is None:
        return None
    from tui_agent.session.entries import SKILL_PREFIX

    return CommandIntent(f"{SKILL_PREFIX}{match[1]}", (match[2] or "").strip())

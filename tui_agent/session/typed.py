"""What the user typed of a message: a command's line stands for everything that was made of it."""

from collections.abc import Sequence

from tui_agent.session.entries import TextPart, UserPart


def command_line(parts: Sequence[UserPart]) -> str | None:
    """Return the command the message was made by, as it was typed; None when what is sent is what was typed."""
    return next((part.typed for part in parts if isinstance(part, TextPart) and part.typed is not None), None)


def typed_text(parts: Sequence[UserPart]) -> str:
    """Return the text of a message as the user typed it, without attachments."""
    line = command_line(parts)
    return "\n".join(part.text for part in parts if isinstance(part, TextPart)) if line is None else line

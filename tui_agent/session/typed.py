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


def prompt_text(parts: Sequence[UserPart]) -> str:
    """Return what a message is edited as: the text that was typed, and what travelled with it unnamed."""
    text = typed_text(parts)
    if command_line(parts) is not None:
        # What it names was read for the command, and is again when the line is sent.
        return text
    paths = [part.path for part in parts if not isinstance(part, TextPart) and part.path]
    return " ".join([text, *(f"@{path}" for path in paths if f"@{path}" not in text)]).strip()

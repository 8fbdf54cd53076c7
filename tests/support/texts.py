"""One-line entries for tests."""

from collections.abc import Iterable

from tui_agent.session.entries import AssistantEntry, Entry, TextPart, ToolCallPart, UserEntry


def said(text: str, *, synthetic: str | None = None) -> UserEntry:
    """A message of the user."""
    return UserEntry(parts=(TextPart(text=text),), synthetic=synthetic)


def answered(text: str, *calls: tuple[str, str, str], model: str = "test/model") -> AssistantEntry:
    """An answer with calls given as (call id, tool, arguments)."""
    parts = [
        ToolCallPart(call_id=call_id, tool=tool, arguments=arguments)
        for call_id, tool, arguments in calls
    ]
    return AssistantEntry(parts=(TextPart(text=text), *parts), model=model)


def texts(entries: Iterable[Entry]) -> list[str]:
    """The previews of entries."""
    return [entry.preview for entry in entries]

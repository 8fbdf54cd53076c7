"""Returns or replaces the text of an entry that users can edit before it is sent to the model."""

from typing import assert_never

from tui_agent.session.entries import (
    AssistantEntry,
    BookkeepingEntry,
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    ShellEntry,
    TextPart,
    ToolResultEntry,
    UserEntry,
)
from tui_agent.session.previews import preview_of


def content_of(entry: Entry) -> str | None:
    """Return the text of an entry, for the user to edit; None for a kind that can't be edited.

    A message's files and images, and an answer's reasoning and calls, are not part of it.
    """
    match entry:
        case UserEntry() | AssistantEntry():
            return entry.text
        case ToolResultEntry() | ShellEntry():
            return entry.output
        case BranchSummaryEntry():
            return entry.summary
        case CompactionEntry() | BookkeepingEntry():
            return None


def with_content(entry: Entry, text: str) -> Entry:
    """Return the entry with the content ``text``. Its ``tokens`` are 0, that is, not counted yet.

    Tool calls are kept, so that their results still belong to them. The provider's reasoning blobs
    are removed, because they were signed for the original answer. A kind that can't be edited is
    returned unchanged.
    """
    match entry:
        case UserEntry(parts=parts):
            others = [part for part in parts if not isinstance(part, TextPart)]
            changes: dict[str, object] = {"parts": (TextPart(text=text), *others)}
        case AssistantEntry():
            unsigned = [part.model_copy(update={"blob": None}) for part in entry.reasoning]
            changes = {"parts": (*unsigned, TextPart(text=text), *entry.tool_calls)}
        case ToolResultEntry(metadata=metadata):
            # The new text is not part of the full output, and does not refer to an earlier result.
            own = metadata.model_copy(update={"known_from": None, "is_known": False})
            changes = {"output": text, "full_output": None, "metadata": own}
        case ShellEntry():
            changes = {"output": text}
        case BranchSummaryEntry():
            changes = {"summary": text}
        case CompactionEntry() | BookkeepingEntry():
            return entry
        case _:
            assert_never(entry)
    edited = entry.model_copy(update={**changes, "tokens": 0, "scripts": ()})
    return edited.model_copy(update={"preview": preview_of(edited)})

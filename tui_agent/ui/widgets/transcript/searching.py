"""Search in a path: entry by entry, newest first, without loading more than it looks at."""

from collections.abc import Iterator
from typing import Final

from tui_agent.session.entries import (
    AssistantEntry,
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    ShellEntry,
    ToolResultEntry,
    UserEntry,
)
from tui_agent.session.typed import command_line
from tui_agent.ui.widgets.transcript.source import EntrySource

_BATCH: Final = 200


def find_all(text: str, query: str) -> Iterator[tuple[int, int]]:
    """Yield where a text holds a query, whatever the case."""
    folded, wanted = text.lower(), query.lower()
    if not wanted or len(folded) != len(text):
        return
    start = folded.find(wanted)
    while start >= 0:
        yield start, start + len(wanted)
        start = folded.find(wanted, start + len(wanted))


def search_entries(source: EntrySource, query: str, limit: int) -> list[int]:
    """Return the ids of entries that hold the query, newest first, at most ``limit``.

    Reads the whole path when there are few matches: for long sessions a full-text index is the better place to ask.
    """
    wanted = query.lower()
    found: list[int] = []
    ids = source.headers.ids
    for end in range(len(ids), 0, -_BATCH):
        batch = source.load(ids[max(end - _BATCH, 0) : end])
        for entry in reversed(batch):
            if any(wanted in text.lower() for text in visible_texts(entry)):
                found.append(entry.id)
                if len(found) == limit:
                    return found
    return found


def visible_texts(entry: Entry) -> Iterator[str]:
    """Yield the texts a reader can see of an entry."""
    match entry:
        case UserEntry():
            yield command_line(entry.parts) or ""
            yield entry.text
        case AssistantEntry():
            yield entry.text
            for call in entry.tool_calls:
                yield call.arguments
            if entry.error:
                yield entry.error
        case ToolResultEntry():
            yield entry.title
            yield entry.output
        case ShellEntry():
            yield entry.command
            yield entry.output
        case CompactionEntry() | BranchSummaryEntry():
            yield entry.summary
        case _:
            pass

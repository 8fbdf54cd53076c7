"""The session's past as the ``recall`` tool reads it: every entry of every branch, full outputs included."""

from collections.abc import Callable, Sequence

from tui_agent.context.tokens import images_of
from tui_agent.session.entries import (
    AssistantEntry,
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    FilePart,
    ImagePart,
    ShellEntry,
    TextPart,
    ToolResultEntry,
    UserEntry,
)
from tui_agent.session.errors import EntryDamaged, EntryNotFound
from tui_agent.session.session import Session
from tui_agent.tools.base import FoundEntry
from tui_agent.tools.registry import tool_traits

_SEARCHED = 4
"""Hits asked for per hit shown: recall's own results and bookkeeping entries are left out."""


class SessionArchive:
    """An ``Archive`` over one session. ``blob`` reads full outputs."""

    def __init__(self, session: Session, blob: Callable[[str], bytes | None]) -> None:
        self._session = session
        self._blob = blob

    def text(self, entry_id: int) -> str | None:
        """Return all of an entry as text; None when there is no such entry, or it holds none."""
        try:
            entry = self._session.entry(entry_id)
        except (EntryNotFound, EntryDamaged):
            return None
        full = self._blob(entry.full_output) if isinstance(entry, ToolResultEntry) and entry.full_output else None
        return full.decode("utf-8", "replace") if full is not None else entry_text(entry)

    def images(self, entry_id: int) -> Sequence[ImagePart]:
        """Return the images an entry holds."""
        try:
            return images_of(self._session.entry(entry_id))
        except (EntryNotFound, EntryDamaged):
            return ()

    def search(self, query: str, limit: int) -> list[FoundEntry]:
        """Return entries in which all words occur, newest first; searches and what they found are left out."""
        found: list[FoundEntry] = []
        for hit in self._session.search(query, limit * _SEARCHED):
            entry = next(iter(self._session.entries([hit.entry_id])), None)
            if entry is None or entry_text(entry) is None or _is_recalling(entry):
                continue
            found.append(FoundEntry(hit.entry_id, hit.kind, hit.snippet, self._session.on_path(hit.entry_id)))
            if len(found) == limit:
                break
        return found


def _is_recalling(entry: Entry) -> bool:
    if isinstance(entry, AssistantEntry):
        return any(tool_traits()[call.tool].shows_past for call in entry.tool_calls)
    return isinstance(entry, ToolResultEntry) and tool_traits()[entry.tool].shows_past


def entry_text(entry: Entry) -> str | None:
    """Return what an entry says, None for kinds that say nothing to a model."""
    match entry:
        case UserEntry():
            parts = (part.text for part in entry.parts if isinstance(part, TextPart | FilePart))
            return "\n".join(parts)
        case AssistantEntry():
            calls = (f"[called {call.tool} {call.arguments}]" for call in entry.tool_calls)
            return "\n".join([*filter(None, [entry.text]), *calls])
        case ToolResultEntry():
            return entry.output
        case ShellEntry(excluded=False):
            return f"$ {entry.command}\n{entry.output}"
        case CompactionEntry() | BranchSummaryEntry():
            return entry.summary
        case _:
            return None

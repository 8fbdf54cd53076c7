"""The path to the leaf, cached in every form callers want, and brought along with every append."""

from array import array
from bisect import bisect_left
from collections.abc import Sequence

from tui_agent.session.entries import Entry
from tui_agent.session.reading import EntryReader
from tui_agent.session.records import EntryHeader, Outlines
from tui_agent.session.spine import active_ids

__all__ = ["LeafPath"]


class LeafPath:
    """The path from the root to one leaf. What is asked for is made once; lists are returned as copies."""

    def __init__(self, reader: EntryReader, leaf: int | None) -> None:
        self.leaf = leaf
        self._reader = reader
        self._ids: array[int] | None = None
        self._entries: list[Entry] | None = None
        self._active: list[Entry] | None = None

    def ids(self) -> "array[int]":
        """Return the ids, root first."""
        if self._ids is None:
            self._ids = array("q", self._reader.ids_to(self.leaf))
        return self._ids

    def holds(self, entry_id: int) -> bool:
        """Whether an entry is on the path."""
        ids = self.ids()
        at = bisect_left(ids, entry_id)
        return at < len(ids) and ids[at] == entry_id

    def entries(self) -> list[Entry]:
        """Return all entries that can be read, root first."""
        if self._entries is None:
            self._entries = self._reader.entries(self.ids())
        return list(self._entries)

    def active(self) -> list[Entry]:
        """Return the entries that a request depends on, root first."""
        if self._active is None:
            wanted = active_ids(self._reader.spine(), self.ids(), self._reader.entries)
            self._active = self._reader.entries(wanted)
        return list(self._active)

    def outline(self) -> Outlines:
        """Return the least that is known of every entry, root first; nothing is read for it."""
        return self._reader.spine().outline(self.ids()[:])

    def headers(self) -> list[EntryHeader]:
        """Return all headers that can be read, root first."""
        return self._reader.headers(self.ids())

    def extend(self, appended: Sequence[Entry]) -> None:
        """Go on to the last of some entries that were appended below the leaf."""
        self.leaf = appended[-1].id
        if self._ids is not None:
            self._ids.extend(entry.id for entry in appended)
        if self._entries is not None:
            self._entries.extend(appended)
        if any(entry.sets_state or entry.edits_view for entry in appended):
            self._active = None
        elif self._active is not None:
            self._active.extend(appended)

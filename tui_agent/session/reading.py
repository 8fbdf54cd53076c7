"""Reads and caches the entries, headers, costs and requests of one session."""

from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from sqlite3 import Connection
from threading import Lock
from typing import TypeVar

from tui_agent.session import entry_table
from tui_agent.session.database import salvage
from tui_agent.session.entries import Entry
from tui_agent.session.errors import EntryNotFound
from tui_agent.session.records import Divergence, EntryHeader, RequestRecord
from tui_agent.session.rows import size_of
from tui_agent.session.skeleton import Headers
from tui_agent.session.store import Store
from tui_agent.session.tree_index import Spine, SpineRows, active_ids

T = TypeVar("T")
IdsT = TypeVar("IdsT", bound=Sequence[int])

_KEPT_ENTRIES = 2_048
_KEPT_CHARS = 2_000_000
"""Maximum number of cached entries, and maximum number of characters of all cached entries."""


class EntryReader:
    """Reads the entries of one session, and caches what it has read.

    Entries that can't be read are left out of every result. ``number`` is the session's number in
    the store, not its id.
    """

    def __init__(self, store: Store, number: int) -> None:
        self._store = store
        self._number = number
        self._spine = Spine()
        self.unreadable: set[int] = set()
        """Ids of the entries that were found to be unreadable so far."""
        self._recent: OrderedDict[int, Entry] = OrderedDict()
        self._recent_chars = 0
        self._recalling = Lock()
        """Held while the cache of entries is used, because several threads may read paths at once.
        """
        self._ids = array("q")
        self._letters = bytearray()
        self._tokens = array("q")
        self._costs: dict[int, float] = {}
        self._copied_until: int | None = None
        self._costs_until = 0
        self._requests: list[RequestRecord] = []
        self._requests_until = 0
        self._used = 0
        """Number of tokens of all requests that were read so far."""
        self._requesting = Lock()
        """Held while the requests are read, because several threads may start to read them at once.
        """

    @property
    def damaged(self) -> int:
        """Number of entries that are missing, lack their parent, or can't be read.

        Unreadable entries are counted only once a read has found them.
        """
        spine = self.spine()
        with self._store.reader() as connection:
            row = connection.execute(
                "SELECT entry_count FROM sessions WHERE number = ?", (self._number,)
            ).fetchone()
        present = {entry_id for entry_id in self.unreadable if entry_id in spine}
        return len(present | spine.reattached) + max(0, (row[0] if row else 0) - spine.count)

    def spine(self) -> Spine:
        """Return the shape of the tree, that is, the parent, kind and size of each entry.

        Entries that other programs appended are included.
        """
        last = self._last_id()
        # This read finds nothing in a new fork, whose last allocated id is greater than its last
        # entry's id.
        if last > self._spine.last:
            for rows in self._fetch(range(self._spine.last + 1, last + 1), entry_table.spine_rows):
                self._spine.extend(rows)
        return self._spine

    def ids_to(self, leaf: int | None) -> Sequence[int]:
        """Return the ids of the entries from the root to ``leaf``; raises EntryNotFound.

        If ``leaf`` is None, the list is empty.
        """
        if leaf is None:
            return []
        if leaf in self._spine:
            spine = self._spine
        else:
            spine = self.spine()
        if leaf not in spine:
            raise EntryNotFound(leaf)
        return spine.path(leaf)

    def parting(self, leaf: int | None, target: int | None) -> Divergence:
        """Return the entries of the path to ``leaf`` that are not on the path to ``target``.

        Raises EntryNotFound if ``leaf`` or ``target`` doesn't exist.
        """
        spine = self.spine()
        for end in (leaf, target):
            if end is not None and end not in spine:
                raise EntryNotFound(end)
        return spine.parting(leaf, target)

    def entries(self, ids: Iterable[int]) -> list[Entry]:
        """Return the entries with the given ids, except unknown and unreadable ones.

        The entries are in the order of ``ids``.
        """
        wanted = list(ids)
        with self._recalling:
            known = {
                entry_id: self._recent[entry_id] for entry_id in wanted if entry_id in self._recent
            }
        missing = set(wanted) - known.keys() - self.unreadable
        if missing:
            known.update((entry.id, entry) for entry in self.load(missing))
        self.keep(known.values())
        return [known[entry_id] for entry_id in wanted if entry_id in known]

    def load(self, ids: Iterable[int]) -> list[Entry]:
        """Read the given entries from the file, without caching, and return them by ascending id.

        Thread-safe.
        """
        return self._fetch(sorted(set(ids)), partial(entry_table.load, damaged=self.unreadable.add))

    def load_active(self, leaf: int | None) -> list[Entry]:
        """Return the entries that a request at the leaf ``leaf`` depends on, root first.

        The entries are not cached. Thread-safe. Raises EntryNotFound if there is no entry ``leaf``.
        """
        return self.load(active_ids(self._spine, self.ids_to(leaf), self.load))

    def keep(self, entries: Iterable[Entry]) -> None:
        with self._recalling:
            for entry in entries:
                if entry.id in self._recent:
                    self._recent.move_to_end(entry.id)
                else:
                    self._recent[entry.id] = entry
                    self._recent_chars += size_of(entry)
            while len(self._recent) > _KEPT_ENTRIES or self._recent_chars > _KEPT_CHARS:
                _, oldest = self._recent.popitem(last=False)
                self._recent_chars -= size_of(oldest)

    def add(self, entries: Sequence[Entry]) -> None:
        """Add newly appended entries to the cache.

        They are also added to the tree's shape if their ids directly follow the shape's last id.
        Otherwise `spine` reads them later, together with the entries that other programs appended.
        """
        self.keep(entries)
        if entries[0].id == self._spine.last + 1:
            self._spine.extend(
                SpineRows.of(
                    (entry.id, entry.parent_id, entry.kind, size_of(entry)) for entry in entries
                )
            )

    def skeleton(self) -> Headers:
        """Return the headers of all entries, by ascending id.

        A header is read when it is first used.
        """
        spine = self.spine()
        first = 1
        if self._ids:
            first = self._ids[-1] + 1
        if first <= spine.last:
            for ids, letters, tokens in self._fetch(
                range(first, spine.last + 1), entry_table.tree_rows
            ):
                self._ids.extend(ids)
                self._letters += letters
                self._tokens.extend(tokens)
        return Headers(
            self._ids[:], bytes(self._letters), self._tokens[:], spine.parents, self.headers
        )

    def costs(self) -> dict[int, float]:
        """Return the cost in US dollars of the entries on all branches, by the entry's id.

        Entries without a cost above 0 are left out. The first call is slow in a long session.
        """
        last = self._last_id()
        if last > self._costs_until:
            self._costs.update(
                self._fetch(range(self._costs_until + 1, last + 1), entry_table.costs)
            )
            self._costs_until = last
        return dict(self._costs)

    def copied_until(self) -> int:
        """Return the id of the newest entry that this fork copied, 0 if the session copied none."""
        if self._copied_until is None:
            with self._store.reader() as connection:
                self._copied_until = entry_table.copied_until(connection, self._number)
        return self._copied_until

    def own_cost(self) -> float | None:
        """Return the US dollars spent on the session's entries, except those that a fork copied.

        Returns None if no entry has a known cost above 0.
        """
        copied = self.copied_until()
        own = [cost for entry_id, cost in self.costs().items() if entry_id > copied]
        if own:
            return sum(own)
        return None

    def requests(self) -> list[RequestRecord]:
        """Return the requests whose answers are stored on any branch, by ascending id. Thread-safe.

        The first call is slow in a long session.
        """
        with self._requesting:
            self._read_requests()
            return list(self._requests)

    def tokens_used(self) -> int:
        """Return the number of tokens of all requests and answers on all branches.

        The tokens are those that the providers counted. Thread-safe. The first call is slow in a
        long session.
        """
        with self._requesting:
            self._read_requests()
            return self._used

    def _read_requests(self) -> None:
        last = self._last_id()
        if last <= self._requests_until:
            return
        new = self._fetch(range(self._requests_until + 1, last + 1), entry_table.requests)
        self._requests.extend(new)
        self._requests_until = last
        self._used += sum(record.prompt + record.output for record in new)

    def headers(self, ids: Sequence[int]) -> list[EntryHeader]:
        """Return the headers of the given entries by ascending id, without unreadable entries.

        If an entry's parent is missing, it is replaced as described at `Spine.reattached`.
        """
        spine = self._spine
        found = []
        if ids:
            found = self._fetch(ids, entry_table.headers_of)
        if not spine.reattached:
            return found
        return [
            header._replace(parent_id=spine.parent(header.id))
            if header.id in spine.reattached
            else header
            for header in found
        ]

    def _last_id(self) -> int:
        with self._store.reader() as connection:
            return entry_table.last_id(connection, self._number)

    def _fetch(self, ids: IdsT, query: Callable[[Connection, int, IdsT], list[T]]) -> list[T]:
        """Return the rows that ``query`` finds for ``ids``.

        Entries that can't be read are left out and recorded.
        """

        def fetch(part: IdsT) -> list[T]:
            with self._store.reader() as connection:
                return query(connection, self._number, part)

        return salvage(fetch, ids, self.unreadable.add)

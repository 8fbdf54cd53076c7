"""What happens in a session: stored first, then told."""

from collections.abc import Callable, Iterable
from typing import TypeVar, cast

from tui_agent.agent.channel import EventChannel
from tui_agent.agent.events import EntryAppended
from tui_agent.lazy import dataclass
from tui_agent.session.entries import Entry, EntryBase
from tui_agent.session.session import Session

EntryT = TypeVar("EntryT", bound=EntryBase)


@dataclass(frozen=True, slots=True)
class Journal:
    """Appends to a session and tells whoever listens to the channel."""

    session: Session
    channel: EventChannel

    def append(self, entry: EntryT, then: Callable[[], None] = lambda: None) -> EntryT:
        """Append an entry below the leaf, tell of it, and return it as stored; see `append_many`."""
        return cast("EntryT", self.append_many([cast("Entry", entry)], then)[0])

    def append_many(self, entries: Iterable[Entry], then: Callable[[], None] = lambda: None) -> list[Entry]:
        """Append entries in one transaction, each below the one before it, and tell of them in their order.

        ``then`` changes what rests on them: after they were stored, before anybody is told.

        Raises:
            StoreError: nothing was stored, and nothing is told.
        """
        saved = self.session.append_many(entries)
        then()
        for entry in saved:
            self.channel.emit(EntryAppended(entry))
        return saved

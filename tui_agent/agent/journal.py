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

    def append(self, entry: EntryT, then: Callable[[], None] | None = None) -> EntryT:
        """Append an entry below the leaf, tell of it, and return it as stored.

        ``then`` changes what rests on the entry: after it was stored, before anybody is told.

        Raises:
            StoreError: nothing was stored, and nothing is told.
        """
        saved = self.session.append(cast("Entry", entry))
        if then is not None:
            then()
        self.channel.emit(EntryAppended(saved))
        return cast("EntryT", saved)

    def append_many(self, entries: Iterable[Entry]) -> list[Entry]:
        """Append entries in one transaction, each below the one before it, and tell of them in their order.

        Raises:
            StoreError: nothing was stored, and nothing is told.
        """
        saved = self.session.append_many(entries)
        for entry in saved:
            self.channel.emit(EntryAppended(entry))
        return saved

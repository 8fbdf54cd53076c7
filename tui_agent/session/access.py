"""What one session object may change: as asked for, as the file allows, and as long as nobody else took the session."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from sqlite3 import Connection

from tui_agent.session import drafts
from tui_agent.session.errors import SessionHeld, SessionNotFound, SessionTakenOver, StoreReadOnly
from tui_agent.session.ids import Clock
from tui_agent.session.store import Store

__all__ = ["WriteAccess"]


# A session's row names the writer that holds it. The name means something only while that writer lives, which the
# system's locks tell, so that a crash frees its sessions. Callers own the transaction.


def _hold(
    connection: sqlite3.Connection,
    session: int,
    writer: str,
    *,
    identity: tuple[int, str],
    at: int,
    alive: Callable[[str | None], bool] | None,
) -> None:
    """Make a writer the holder. ``alive`` tells whether the present one lives; None takes the session over.

    Raises:
        SessionHeld: another live writer holds it.
    """
    row = connection.execute(
        "SELECT id, holder, holder_pid, holder_host, held_since FROM sessions WHERE number = ?", (session,)
    ).fetchone()
    if row is None:
        raise SessionNotFound(str(session))
    session_id, holder, pid, host, since = row
    if holder == writer:
        return
    if alive is not None and alive(holder):
        raise SessionHeld(session_id, pid, host, since)
    connection.execute(
        "UPDATE sessions SET holder = ?, holder_pid = ?, holder_host = ?, held_since = ? WHERE number = ?",
        (writer, *identity, at, session),
    )


def _release(connection: sqlite3.Connection, session: int, writer: str) -> None:
    connection.execute("UPDATE sessions SET holder = NULL WHERE number = ? AND holder = ?", (session, writer))


def _check_holder(connection: sqlite3.Connection, session: int, writer: str) -> None:
    """Make sure that a writer still holds a session.

    Raises:
        SessionTakenOver: another one does.
        SessionNotFound: the session was deleted for good.
    """
    row = connection.execute("SELECT id, holder FROM sessions WHERE number = ?", (session,)).fetchone()
    if row is None:
        raise SessionNotFound(str(session))
    if row[1] != writer:
        raise SessionTakenOver(row[0])


class WriteAccess:
    """The right of one writer to change one session, checked with every change.

    Args:
        store: Where the session is kept.
        session_id: The whole id.
        writer: The name the store gave the session object.
        clock: Where the time of holding comes from.
        read_only: Refuse all changes.
    """

    def __init__(self, store: Store, session_id: str, writer: str, clock: Clock, *, read_only: bool) -> None:
        self._store = store
        self._id = session_id
        self._number = store.number(session_id)
        self._writer = writer
        self._clock = clock
        self._asked_read_only = read_only
        self._holding = False
        self._taken_over = False

    @property
    def read_only(self) -> bool:
        return self._asked_read_only or self._taken_over or self._store.read_only is not None

    def check_for_take_over(self) -> bool:
        """Return whether another writer holds what this one held; from then on nothing can be changed.

        Raises:
            SessionNotFound: the session was deleted for good.
        """
        if self._holding and not self._taken_over:
            with self._store.reader() as connection, suppress(SessionTakenOver):
                self._check(connection)
        return self._taken_over

    def hold(self) -> None:
        """Hold the session; holding it already is fine.

        Raises:
            SessionHeld: another live writer does.
            StoreReadOnly: nothing can be saved.
        """
        self._hold(self._store.alive)

    def take_over(self) -> None:
        """Hold the session whoever holds it."""
        self._hold(None)

    def release(self, *, has_draft: bool) -> None:
        """Let others hold the session; a draft that is left over becomes nobody's."""
        if (self._holding or has_draft) and self._store.read_only is None:
            with self._store.writer() as connection:
                _release(connection, self._number, self._writer)
                drafts.orphan(connection, self._number, self._writer)
        self._holding = False

    def announce(self) -> None:
        """Let other programs see that this writer lives, before something is stored in its name.

        Raises:
            StoreReadOnly: nothing can be saved.
        """
        self._refuse_if_read_only()
        self._store.announce()

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """A write transaction.

        Raises:
            StoreReadOnly: nothing can be saved.
            SessionTakenOver: another writer holds what this one held.
        """
        self._refuse_if_read_only()
        if self._taken_over:
            raise SessionTakenOver(self._id)
        with self._store.writer() as connection:
            if self._holding:
                self._check(connection)
            yield connection

    def _hold(self, alive: Callable[[str | None], bool] | None) -> None:
        self.announce()
        with self._store.writer() as connection:
            _hold(
                connection,
                self._number,
                self._writer,
                identity=self._store.identity(),
                at=self._clock(),
                alive=alive,
            )
        self._holding = True
        self._taken_over = False

    def _check(self, connection: Connection) -> None:
        try:
            _check_holder(connection, self._number, self._writer)
        except SessionTakenOver:
            self._taken_over = True
            raise

    def _refuse_if_read_only(self) -> None:
        if self._store.read_only is not None:
            raise self._store.read_only
        if self._asked_read_only:
            raise StoreReadOnly("This session is read-only: /fork continues in a copy.")

"""Who works on a session: the statements behind `Session.hold`, `take_over` and `release`. Callers own the transaction.

A session's row names the writer that holds it. The name means something only while that writer lives, which the
operating system's locks tell, so that a crash frees its sessions.
"""

import sqlite3
from collections.abc import Callable

from tui_agent.session.errors import SessionHeld, SessionNotFound, SessionTakenOver

__all__ = ["check", "hold", "release"]


def hold(
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


def release(connection: sqlite3.Connection, session: int, writer: str) -> None:
    """Free a session if this writer holds it."""
    connection.execute("UPDATE sessions SET holder = NULL WHERE number = ? AND holder = ?", (session, writer))


def check(connection: sqlite3.Connection, session: int, writer: str) -> None:
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

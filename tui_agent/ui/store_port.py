"""What the user interface needs of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.session.records import EntryHeader, SessionInfo
    from tui_agent.session.unsent import Unsent


class StorePort(Protocol):
    """The sessions of this user; ``session.store.Store`` is one."""

    def sessions(
        self, *, cwd: Any = None, query: str | None = None, limit: int = 200, offset: int = 0
    ) -> Sequence[SessionInfo]:
        """List sessions, newest first; ``query`` searches their full text. May be called in a thread."""
        ...

    def session(self, id_or_prefix: str) -> SessionInfo:
        """Return one session."""
        ...

    def rename(self, session_id: str, title: str) -> None:
        """Give a session a title."""
        ...

    def delete(self, session_id: str) -> None:
        """Delete a session; ``undelete`` brings it back until the program ends."""
        ...

    def undelete(self, session_id: str) -> None:
        """Undo ``delete``."""
        ...

    def fork(self, session_id: str, at_entry: int | None) -> SessionInfo:
        """Copy the path to an entry into a new session."""
        ...

    def matching(self, query: str, session_id: str) -> Sequence[int]:
        """Return the ids of all entries of a session that match a search. May be called in a thread."""
        ...

    def mentionable(self, session_id: str, query: str, limit: int) -> Sequence[EntryHeader]:
        """Return the headers of entries that fit what was typed after ``#``, newest first. Called in a thread."""
        ...

    def prompt_history(self, limit: int) -> Sequence[str]:
        """Return what the user wrote in any session, newest first."""
        ...

    def keep_unsent(self, place: str, unsent: Unsent) -> None:
        """Keep what was written and not sent in a session or directory."""
        ...

    def take_unsent(self, place: str) -> Unsent:
        """Return what was kept there, and forget it."""
        ...

    def put_blob(self, data: bytes) -> str:
        """Store bytes, return their digest."""
        ...

    def blob(self, digest: str) -> bytes | None:
        """Return the bytes of a digest, None when there are none."""
        ...

"""The ports for what is kept: the sessions of this user, and the files that sessions leave in and come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    # Only for annotations: this module is there before the first paint, and entries take long to import.
    from collections.abc import Sequence
    from pathlib import Path

    from tui_agent.agent.exporting import ExportOrder
    from tui_agent.session.errors import StoreError
    from tui_agent.session.records import EntryHeader, SearchHit, SessionInfo, SessionTotals
    from tui_agent.session.unsent import Unsent


class StorePort(Protocol):
    """The sessions of this user; ``session.store.Store`` is one."""

    @property
    def read_only(self) -> StoreError | None:
        """Why nothing can be saved, None when all is well."""
        ...

    def sessions(
        self, *, cwd: Any = None, query: str | None = None, limit: int = 200, offset: int = 0
    ) -> Sequence[SessionInfo]:
        """List sessions, newest first; ``query`` searches their full text. May be called in a thread."""
        ...

    def session(self, id_or_prefix: str) -> SessionInfo:
        """Return one session."""
        ...

    def search(self, query: str, limit: int = 50, *, cwd: Any = None) -> Sequence[SearchHit]:
        """Return the newest entries that match, of all sessions or one directory's. May be called in a thread."""
        ...

    def totals(self, session_id: str) -> SessionTotals:
        """Return what a session amounts to. May be called in a thread."""
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


@dataclass(frozen=True, slots=True)
class ImportOutcome:
    """What an import did: lines for people, and the session to open when there was exactly one."""

    told: tuple[str, ...]
    session_id: str | None = None
    failed: int = 0


class TransferPort(Protocol):
    """Sessions that leave and come in. Called in a thread."""

    def text(self, order: ExportOrder) -> str:
        """Return what would be exported.

        Raises:
            StoreError: there is no such session.
        """
        ...

    def export(self, order: ExportOrder, target: Path) -> Path:
        """Write a session to a file, or into a directory under a name of its own; return the file.

        Raises:
            StoreError: there is no such session.
            FileExistsError: the file is there already.
            OSError: it can't be written.
        """
        ...

    def import_files(self, path: Path) -> ImportOutcome:
        """Take in the sessions of a file, or of all files of a directory.

        Raises:
            StoreError: there is no such file.
        """
        ...

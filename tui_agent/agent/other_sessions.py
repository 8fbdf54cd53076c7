"""Returns the text of another session, or of one of its entries, that a message names.

``@session:1a2b3c4d`` names a session, ``@session:1a2b3c4d#34`` one of its entries, and ``@session``
the most recently used session of the same directory. ``attachments`` puts the text into the
message. The other session is only read, even while another program writes to it.
"""

from collections.abc import Iterator, Sequence

from tui_agent.agent.archive import entry_named
from tui_agent.lazy import LazyPattern
from tui_agent.safe_text import one_line
from tui_agent.session.entries import (
    SESSION_PREFIX,
    AssistantEntry,
    CompactionEntry,
    Entry,
    FilePart,
    is_by_user,
)
from tui_agent.session.errors import AmbiguousSession, StoreError
from tui_agent.session.ids import short_id
from tui_agent.session.path_queries import newest
from tui_agent.session.records import SessionInfo
from tui_agent.session.session import Session, session_to_read

_NAME = LazyPattern(r"session(?::([\w-]{4,36}))?(?:#(\d{1,9}))?")
_MOST_CHARS = 40_000
"""Maximum number of characters of an attached entry or session overview."""
_MESSAGE_CHARS = 500
"""Maximum characters of each user message in a session's overview."""
_MOST_MESSAGES = 20
"""Maximum number of user messages in a session's overview, which contains only the newest ones."""


def names_session(name: str) -> bool:
    """Return True if a name (without the ``@``) has a session's form: ``session:1a2b3c4d#34``.

    The id and the number may be missing: ``session``, ``session#34``, ``session:1a2b3c4d``.
    """
    return _NAME.fullmatch(name) is not None


def attached_part(name: str, session: Session) -> FilePart | str:
    """Return the attachment for ``name``: the overview of a session, or one of its entries.

    ``session`` is the session that is open. If there is nothing to attach, returns a clause that
    says why. Reads the store; call it in a thread.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        return "there is no such session"
    try:
        info = _session_named(found[1] or "", session)
    except AmbiguousSession:
        return "several sessions have that name"
    except StoreError:
        info = None
    if info is None:
        return "there is no such session"
    source = f"session “{one_line(info.title or info.first_message, 60)}” ({short_id(info.id)})"
    address = f"{SESSION_PREFIX}{short_id(info.id)}"
    if found[2] is None:
        return FilePart(path=address, text=_cut(f"From {source}:\n{_overview(info, session)}"))
    text = entry_named(f"{info.id}#{found[2]}", session, session.store.blob)
    if text is None:
        return f"that session has no entry #{found[2]} with text"
    return FilePart(
        path=f"{address}#{found[2]}", text=_cut(f"From {source}, block #{found[2]}:\n{text}")
    )


def sessions_beside(session: Session, limit: int = 50) -> list[SessionInfo]:
    """Return the directory's other sessions that contain entries, most recently used first.

    Only the ``limit`` most recently used sessions are considered.
    """
    found = session.store.sessions(cwd=session.info.cwd, limit=limit)
    return [info for info in found if info.id != session.id and info.entry_count]


def _session_named(name: str, session: Session) -> SessionInfo | None:
    if name:
        return session.store.session(name)
    return next(iter(sessions_beside(session, limit=5)), None)


def _overview(info: SessionInfo, session: Session) -> str:
    """Return a session's last summary, the user's newest messages and the last answer as text."""
    other = session_to_read(session.store, info.id)
    return "\n".join(_lines(other.active_path()))


def _lines(path: Sequence[Entry]) -> Iterator[str]:
    summary = newest(path, CompactionEntry)
    if summary is not None:
        yield f"[Summary #{summary.id}]: {summary.summary}"
    asked = [entry for entry in path if is_by_user(entry)]
    for entry in asked[-_MOST_MESSAGES:]:
        yield f"[User #{entry.id}]: {one_line(entry.text, _MESSAGE_CHARS)}"
    answer = newest(path, AssistantEntry, where=lambda entry: bool(entry.text.strip()))
    if answer is not None:
        yield f"[Last answer #{answer.id}]: {answer.text}"


def _cut(text: str) -> str:
    if len(text) <= _MOST_CHARS:
        return text
    return f"{text[:_MOST_CHARS]}\n[{len(text) - _MOST_CHARS:,} more characters]"

"""Removes secrets from all entries, blobs, drafts and titles of the store, and from its index.

This is the only code that changes stored entries. The ids and parents of entries stay the same;
previews, sizes, tokens and the search index are computed again. Snapshots of files with a secret
are removed from checkpoints, because undo must not write ``[redacted]`` into a file.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from tui_agent.lazy import frozen
from tui_agent.secret_detector import REMOVED
from tui_agent.secret_forms import SecretForms
from tui_agent.session import entry_table
from tui_agent.session.entries import (
    AssistantEntry,
    BookkeepingEntry,
    BranchSummaryEntry,
    CheckpointEntry,
    CompactionEntry,
    Entry,
    FileChange,
    ShellEntry,
    SummaryDetails,
    TextPart,
    ToolMetadata,
    ToolResultEntry,
    UserEntry,
)
from tui_agent.session.errors import EntryNotFound
from tui_agent.session.records import SessionInfo
from tui_agent.session.rows import BodyError, blobs_of, body_of, completed, entry_from
from tui_agent.session.schema import key_of, key_range
from tui_agent.session.store import Store

DROPPED_IMAGE = "it held a redacted secret"
"""The reason (``no_before`` or ``no_after``) stored for a snapshot that was removed from a
checkpoint because of a secret."""

_TEXTS = (
    ("sessions", "title"),
    ("sessions", "first_message"),
    ("sessions", "outcome"),
    ("entries", "preview"),
    ("labels", "text"),
    ("drafts", "body"),
    ("unsent", "text"),
    ("unsent", "waiting"),
)
"""The tables and columns, besides the bodies of entries, whose texts are searched for secrets."""

_ROW = (
    "SELECT e.id, e.parent_id, e.kind, e.preview, e.tokens, e.created_at, b.body "
    "FROM bodies AS b JOIN entries AS e ON e.session = b.key >> 32 AND e.id = b.key & 4294967295 "
    "WHERE b.key = ?"
)


@frozen
class StoreFinding:
    """How many parts of the store contain secrets. The object is falsy if no secrets were found.

    ``entries`` is the number of entries by session id, ``deleted`` the number of entries in deleted
    sessions, ``blobs`` the number of blobs, and ``texts`` the number of titles, drafts and other
    texts.
    """

    entries: Mapping[str, int]
    deleted: int = 0
    blobs: int = 0
    texts: int = 0

    def __bool__(self) -> bool:
        return bool(self.entries or self.deleted or self.blobs or self.texts)


@frozen
class Removal:
    """Says which secrets are to be found or removed.

    ``estimate`` returns the number of tokens of an entry that was changed. ``whole`` is (session
    id, entry id) of an entry whose content is removed as a whole, along with that of its copies in
    forks; None if there is no such entry.
    """

    forms: SecretForms
    estimate: Callable[[Entry], int]
    whole: tuple[str, int] | None = None


def find(store: Store, removal: Removal) -> StoreFinding:
    """Count the entries, blobs and texts with a secret, and the entry to empty with its copies.

    Takes seconds in a large store, so call it in a thread.
    """
    with store.reader() as connection:
        _define(connection, removal.forms)
        keys = set(_keys(connection, removal.forms.text))
        keys.update(_same_entries(connection, store, removal))
        numbers = Counter(key >> 32 for key in keys)
        rows = connection.execute("SELECT number, id FROM sessions WHERE deleted_at IS NULL")
        ids = dict(rows.fetchall())
        texts = 0
        for table, column in _TEXTS:
            if (table, column) == ("entries", "preview"):
                continue
            texts += connection.execute(
                f"SELECT count(*) FROM {table} WHERE {column} != redacted({column})"  # noqa: S608 - names from above
            ).fetchone()[0]
        blobs = len(_blobs(connection))
    entries = {ids[number]: count for number, count in numbers.items() if number in ids}
    return StoreFinding(entries, numbers.total() - sum(entries.values()), blobs, texts)


def holders(store: Store, finding: StoreFinding) -> list[SessionInfo]:
    """Return the sessions of a finding that are held by running programs, including this one."""
    infos = [store.session(session_id) for session_id in finding.entries]
    return [info for info in infos if info.held_by is not None]


def remove(store: Store, removal: Removal) -> None:
    """Remove the secrets from all rows, and all content of the entry ``removal.whole``.

    The copies of that entry in forks are emptied, too.

    Raises StoreError if the removal fails; nothing is changed in this case. The file's free pages
    and journal may still contain the secrets until `Store.rewrite`.
    """
    with store.writer() as connection:
        _define(connection, removal.forms)
        for key in _same_entries(connection, store, removal):
            _empty(connection, key, removal.estimate)
        renamed = _mask_blobs(connection, removal.forms, store.clock())

        def clean(text: str) -> str:
            for old, new in renamed.items():
                text = text.replace(old, new)
            return removal.forms.text(text)

        for key in list(_keys(connection, clean)):
            _clean_entry(connection, key, clean, frozenset(renamed), removal.estimate)
        for table, column in _TEXTS:
            connection.execute(
                f"UPDATE {table} SET {column} = redacted({column}) WHERE {column} != redacted({column})"  # noqa: S608 - names from above
            )
        # Removed words stay in older segments of the index until the segments are merged, as is
        # done here.
        connection.execute("INSERT INTO entries_fts (entries_fts) VALUES ('optimize')")


def emptied(entry: Entry) -> Entry:
    """Return an entry with its content replaced by `REMOVED`; tool calls keep their ids and names.

    Raises EntryNotFound for a kind of entry without content, such as a checkpoint.
    """
    changes: dict[str, object]
    match entry:
        case UserEntry():
            changes = {"parts": (TextPart(text=REMOVED),)}
        case ShellEntry():
            changes = {"command": REMOVED, "output": REMOVED}
        case AssistantEntry():
            calls = [call.model_copy(update={"arguments": "{}"}) for call in entry.tool_calls]
            changes = {"parts": (TextPart(text=REMOVED), *calls), "error": None}
        case ToolResultEntry(metadata=metadata):
            kept = ToolMetadata(session=metadata.session, branch=metadata.branch)
            changes = {"output": REMOVED, "attachments": (), "full_output": None, "title": ""}
            changes["metadata"] = kept
        case CompactionEntry():
            changes = {"summary": REMOVED, "item": None, "details": SummaryDetails()}
            changes["instructions"] = None
        case BranchSummaryEntry():
            changes = {"summary": REMOVED, "details": SummaryDetails()}
        case BookkeepingEntry():
            raise EntryNotFound(entry.id)
    return entry.model_copy(update=changes)


def _define(connection: sqlite3.Connection, forms: SecretForms) -> None:
    """Define two SQL functions on a connection.

    ``redacted(text)`` returns the text without the secrets, and ``holds(bytes)`` tells whether the
    bytes contain a secret.
    """
    connection.create_function("redacted", 1, forms.text, deterministic=True)
    connection.create_function("holds", 1, forms.is_in, deterministic=True)


def _keys(connection: sqlite3.Connection, clean: Callable[[str], str]) -> Iterator[int]:
    for key, body in connection.execute("SELECT key, body FROM bodies"):
        if clean(body) != body:
            yield key


def _blobs(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT digest FROM blobs WHERE holds(content)")
    return [digest for (digest,) in rows]


def _mask_blobs(connection: sqlite3.Connection, forms: SecretForms, at: int) -> dict[str, str]:
    """Replace blobs that contain secrets with blobs whose secrets are masked.

    Returns the new digest of each replaced blob, by the old digest.
    """
    renamed: dict[str, str] = {}
    for old in _blobs(connection):
        (content,) = connection.execute(
            "SELECT content FROM blobs WHERE digest = ?", (old,)
        ).fetchone()
        renamed[old] = entry_table.put_blob(connection, forms.masked(content), at)
        connection.execute("DELETE FROM blobs WHERE digest = ?", (old,))
        connection.execute(
            "UPDATE OR REPLACE blob_uses SET digest = ? WHERE digest = ?", (renamed[old], old)
        )
    return renamed


def _clean_entry(
    connection: sqlite3.Connection,
    key: int,
    clean: Callable[[str], str],
    gone: frozenset[str],
    estimate: Callable[[Entry], int],
) -> None:
    row = connection.execute(_ROW, (key,)).fetchone()
    try:
        old = entry_from(row)
    except (BodyError, TypeError):
        # The entry is unreadable or has lost its header, so only the secrets in its body are
        # removed.
        connection.execute("UPDATE bodies SET body = redacted(body) WHERE key = ?", (key,))
        return
    body = clean(body_of(_without_opaque(old, clean, gone)))
    new = entry_from((*row[:-1], body))
    _replace(connection, key >> 32, old, completed_again(new, estimate))


def completed_again(entry: Entry, estimate: Callable[[Entry], int]) -> Entry:
    """Return an entry with a new preview and a new estimate of its tokens."""
    bare = entry.model_copy(update={"tokens": 0, "scripts": ()})
    return completed(bare, entry.id, entry.parent_id, entry.created_at, estimate)


def _without_opaque(entry: Entry, clean: Callable[[str], str], gone: frozenset[str]) -> Entry:
    """Return an entry without data in which a secret can't be replaced.

    Such data are the signed reasoning of an answer, a provider's compaction that contains a secret,
    and file snapshots whose blobs are in ``gone``.
    """
    match entry:
        case AssistantEntry(parts=parts):
            kept = [
                part.model_copy(update={"blob": None}) if part.type == "reasoning" else part
                for part in parts
            ]
            return entry.model_copy(update={"parts": tuple(kept)})
        case CompactionEntry(item=str() as item) if clean(item) != item:
            return entry.model_copy(update={"item": None})
        case CheckpointEntry(files=files):
            images = tuple(_without_images(change, gone) for change in files)
            return entry.model_copy(update={"files": images})
        case _:
            return entry


def _without_images(change: FileChange, gone: frozenset[str]) -> FileChange:
    changes: dict[str, str | None] = {}
    if change.before in gone:
        changes |= {"before": None, "no_before": DROPPED_IMAGE}
    if change.after in gone:
        changes |= {"after": None, "no_after": DROPPED_IMAGE}
    return change.model_copy(update=changes)


def _same_entries(connection: sqlite3.Connection, store: Store, removal: Removal) -> list[int]:
    """Return the keys of the entry ``removal.whole`` and of its copies; [] if it is None."""
    if removal.whole is None:
        return []
    session_id, entry_id = removal.whole
    key = key_of(store.number(session_id), entry_id)
    rows = connection.execute(
        "SELECT b.key FROM entries AS e JOIN bodies AS b ON b.key = (e.session << 32) | e.id "
        "WHERE e.id = ? AND b.body = (SELECT body FROM bodies WHERE key = ?)",
        (entry_id, key),
    )
    return [found for (found,) in rows] or [key]


def _empty(connection: sqlite3.Connection, key: int, estimate: Callable[[Entry], int]) -> None:
    session = key >> 32
    entry_id = key & 0xFFFFFFFF
    found = entry_table.load(connection, session, [entry_id], lambda _damaged: None)
    if not found:
        raise EntryNotFound(entry_id)
    _replace(connection, session, found[0], completed_again(emptied(found[0]), estimate))


def _drop_use(connection: sqlite3.Connection, session: int, digest: str) -> None:
    """Remove a session's use of a blob unless an entry of the session still names the blob.

    The blob is deleted when no session uses it.
    """
    named = connection.execute(
        "SELECT 1 FROM bodies WHERE key BETWEEN ? AND ? AND instr(body, ?)",
        (*key_range(session), digest),
    )
    if named.fetchone() is not None:
        return
    connection.execute("DELETE FROM blob_uses WHERE session = ? AND digest = ?", (session, digest))
    connection.execute(
        "DELETE FROM blobs WHERE digest = ? AND digest NOT IN (SELECT digest FROM blob_uses)",
        (digest,),
    )


def _replace(connection: sqlite3.Connection, session: int, old: Entry, new: Entry) -> None:
    entry_table.replace(connection, session, old, new)
    for digest in blobs_of(old) - blobs_of(new):
        _drop_use(connection, session, digest)

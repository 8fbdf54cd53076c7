"""Content-addressed bytes: full tool outputs, images, snapshots of files. Callers own the transaction."""

import hashlib
import sqlite3

_GRACE_MS = 3600 * 1000
"""Milliseconds a blob outlives its last use: whoever put it may not have appended the entry that needs it yet."""


def put(connection: sqlite3.Connection, content: bytes, at: int) -> str:
    """Store bytes unless they are there already; return their SHA-256 digest in hexadecimal."""
    digest = hashlib.sha256(content).hexdigest()
    known = connection.execute("UPDATE blobs SET used_at = ? WHERE digest = ?", (at, digest)).rowcount
    if not known:
        connection.execute("INSERT INTO blobs (digest, used_at, content) VALUES (?, ?, ?)", (digest, at, content))
    return digest


def get(connection: sqlite3.Connection, digest: str) -> bytes | None:
    """Return a blob's bytes, None when there is none."""
    row = connection.execute("SELECT content FROM blobs WHERE digest = ?", (digest,)).fetchone()
    return None if row is None else row[0]


def collect(connection: sqlite3.Connection, at: int) -> int:
    """Delete the blobs that no session uses any more and return how many it were."""
    return connection.execute(
        "DELETE FROM blobs WHERE used_at < ? AND NOT EXISTS "
        "(SELECT 1 FROM blob_uses WHERE blob_uses.digest = blobs.digest)",
        (at - _GRACE_MS,),
    ).rowcount

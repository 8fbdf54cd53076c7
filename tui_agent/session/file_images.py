"""Images of files in the blob store: what they take together, and which go first when that is too much."""

import re
import sqlite3
from collections.abc import Sequence

__all__ = ["drop", "surplus"]

_KEPT_SHARE = 0.8
"""Images are dropped down to this part of the limit, so that it is not reached again at once."""

_IMAGES = """
SELECT digest, length(content) FROM blobs WHERE digest IN (
    SELECT json_extract(file.value, '$.' || side.value)
    FROM entries
    JOIN bodies ON bodies.key = (entries.session << 32) | entries.id
    JOIN json_each(bodies.body, '$.files') AS file
    JOIN json_each('["before", "after"]') AS side
    WHERE entries.kind = 'checkpoint'
)
ORDER BY used_at, digest
"""
_OTHERS = """
SELECT bodies.body FROM entries JOIN bodies ON bodies.key = (entries.session << 32) | entries.id
WHERE entries.kind IN ('tool_result', 'user')
AND (instr(bodies.body, '"full_output":"') OR instr(bodies.body, '"blob":"'))
"""
_DIGEST = re.compile(r'"(?:full_output|blob)":"([0-9a-f]{64})"')


def surplus(connection: sqlite3.Connection, limit: int) -> list[str]:
    """Return the images to drop, those used longest ago first, when all of them take more than ``limit`` bytes.

    Bytes that are an output or an attached image as well are not among them.
    """
    images: list[tuple[str, int]] = connection.execute(_IMAGES).fetchall()
    total = sum(size for _, size in images)
    if total <= limit:
        return []
    needed = {digest for (body,) in connection.execute(_OTHERS) for digest in _DIGEST.findall(body)}
    chosen: list[str] = []
    for digest, size in images:
        if total <= limit * _KEPT_SHARE:
            break
        if digest not in needed:
            chosen.append(digest)
            total -= size
    return chosen


def drop(connection: sqlite3.Connection, digests: Sequence[str]) -> None:
    """Delete images; the entries that name them stay."""
    connection.executemany("DELETE FROM blobs WHERE digest = ?", [(digest,) for digest in digests])

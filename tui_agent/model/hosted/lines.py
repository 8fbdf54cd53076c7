"""The lines between the program and the model host: JSON, one document a line.

To the host: ``{"op": "stream", "id", "call", "limits"}``, ``{"op": "cancel", "id"}``, ``{"op":
"shutdown"}``. From the host: ``[id, event]``, id 0 being the host itself. An event is a list that
begins with its name.
"""

import json
from typing import Any, Final

Event = list[Any]

HOST: Final = 0
"""The id of lines that don't belong to a request."""

READY: Final = "ready"
"""``["ready"]``: the host takes requests now."""

ACCEPTED: Final = "accepted"
"""``["accepted"]``: the host works on the request."""

CHUNK: Final = "chunk"
"""``["chunk", text]``: a piece of the answer, as a chunk of chat completions."""

FINISHED: Final = "finished"
"""``["finished"]``: the last event of an answer."""

FAILED: Final = "failed"
"""``["failed", {...}]``: the last event of a request that failed; the fields of
``errors.Failure``."""

LAST: Final = frozenset({FINISHED, FAILED})


def encode(document: Any) -> bytes:
    """Return a value as one line of ASCII JSON, with its line feed.

    ASCII, so that lone surrogates and unusual line separators survive.
    """
    return json.dumps(document, separators=(",", ":")).encode("ascii") + b"\n"


class LineReader:
    """Splits a stream of bytes into documents; lines may have any length."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """Take bytes and return the documents that are complete now.

        Raises:
            ValueError: a line is not JSON.
        """
        end = data.rfind(b"\n")
        if end < 0:
            self._rest += data
            return []
        whole = bytes(self._rest) + data[:end]
        self._rest = bytearray(data[end + 1 :])
        return [json.loads(line) for line in whole.split(b"\n") if line]

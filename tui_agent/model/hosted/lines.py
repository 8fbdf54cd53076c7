"""The protocol between the program and the model host, with one JSON document per line.

The program sends ``{"op": "stream", "id", "call", "limits"}``, ``{"op": "cancel", "id"}``, ``{"op":
"shutdown"}``. The host sends ``[id, event]`` with the id of the request, or 0 for events of the
host itself. An event is a list that begins with its name.
"""

import json
from typing import Any, Final

Event = list[Any]

HOST: Final = 0
"""The id in lines of the host that belong to no request."""

READY: Final = "ready"
"""``["ready"]`` says that the host accepts requests now."""

ACCEPTED: Final = "accepted"
"""``["accepted"]`` says that the host has begun to work on the request."""

CHUNK: Final = "chunk"
"""``["chunk", text]`` is a piece of the answer, as the JSON text of a chat completions chunk."""

FINISHED: Final = "finished"
"""``["finished"]`` is the last event of an answer."""

FAILED: Final = "failed"
"""``["failed", {...}]`` is the last event of a request that failed; it contains the fields of
``errors.Failure``."""

LAST: Final = frozenset({FINISHED, FAILED})


def encode(document: Any) -> bytes:
    """Encode a value as one line of JSON that ends with a line feed.

    The line is ASCII, so that lone surrogates and unusual line separators are preserved.
    """
    return json.dumps(document, separators=(",", ":")).encode("ascii") + b"\n"


class LineReader:
    """Splits a stream of bytes into JSON documents, one per line of any length."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """Add bytes and return the documents that are now complete, parsed.

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

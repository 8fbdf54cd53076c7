"""Encodes and decodes the messages between a detached run and terminals.

A message is its kind (one byte), the length of the payload (four bytes), and the payload.
"""

import struct
from collections.abc import Iterator
from enum import Enum

MAX_PAYLOAD = 1 << 20
"""Maximum size of a message's payload, in bytes."""

_HEAD = struct.Struct(">cI")
_SIZE = struct.Struct(">HH")


class Kind(Enum):
    """The kind of a message; its value is the message's first byte."""

    INPUT = b"i"
    """Sent to the run: input that the user typed."""
    SIZE = b"w"
    """Sent to the run: the size of the terminal.

    This is the first message from a terminal that attaches.
    """
    LEAVE = b"d"
    """Sent to the run: a request to detach every terminal.

    Sent by the run: this terminal was detached.
    """
    ASK = b"q"
    """Sent to the run: a request for the run's state.

    Sent by the run: a `DetachedState` as JSON.
    """
    STOP = b"s"
    """Sent to the run: a request to end the program."""
    OUTPUT = b"o"
    """Sent by the run: output of the program."""
    END = b"x"
    """Sent by the run: the program has ended; the payload is its exit code in digits."""


class BadFrameError(Exception):
    """Raised if the received bytes are not a valid message."""


def frame(kind: Kind, payload: bytes = b"") -> bytes:
    return _HEAD.pack(kind.value, len(payload)) + payload


def size_frame(columns: int, rows: int) -> bytes:
    return frame(Kind.SIZE, _SIZE.pack(columns, rows))


def read_size(payload: bytes) -> tuple[int, int]:
    """Return the columns and rows in the payload of a SIZE message, each at least 2.

    Raises `BadFrameError` if the payload is invalid.
    """
    try:
        columns, rows = _SIZE.unpack(payload)
    except struct.error as error:
        raise BadFrameError(str(error)) from None
    return max(2, columns), max(2, rows)


class FrameReader:
    """Assembles whole messages from the pieces of data that a connection receives."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[Kind, bytes]]:
        """Add received data, and yield the messages that it completes; raises `BadFrameError`."""
        self._buffer += data
        while len(self._buffer) >= _HEAD.size:
            letter, length = _HEAD.unpack_from(self._buffer)
            if length > MAX_PAYLOAD:
                raise BadFrameError(f"a message of {length:,} bytes")
            end = _HEAD.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[_HEAD.size : end])
            del self._buffer[:end]
            try:
                kind = Kind(letter)
            except ValueError:
                raise BadFrameError(f"no kind {letter!r}") from None
            yield kind, payload

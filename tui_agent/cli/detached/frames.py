"""The messages between a detached run and those who attach to it: a kind, a length, a payload."""

import struct
from collections.abc import Iterator
from enum import Enum

MAX_PAYLOAD = 1 << 20
"""Bytes of the largest payload that is believed."""

_HEAD = struct.Struct(">cI")
_SIZE = struct.Struct(">HH")


class Kind(Enum):
    """What a message is."""

    INPUT = b"i"
    """To the run: what was typed."""
    SIZE = b"w"
    """To the run: the size of the terminal that attaches. The first message of a terminal."""
    LEAVE = b"d"
    """To the run: let every terminal go. From it: it let this one go."""
    ASK = b"q"
    """To the run: say how you stand. From it: that, as JSON."""
    STOP = b"s"
    """To the run: end."""
    OUTPUT = b"o"
    """From the run: what the program wrote."""
    END = b"x"
    """From the run: the program ended with this exit code."""


class BadFrameError(Exception):
    """What came is no message of ours."""


def frame(kind: Kind, payload: bytes = b"") -> bytes:
    return _HEAD.pack(kind.value, len(payload)) + payload


def size_frame(columns: int, rows: int) -> bytes:
    return frame(Kind.SIZE, _SIZE.pack(columns, rows))


def read_size(payload: bytes) -> tuple[int, int]:
    """Return columns and rows, at least 2 by 2; raises `BadFrameError`."""
    try:
        columns, rows = _SIZE.unpack(payload)
    except struct.error as error:
        raise BadFrameError(str(error)) from None
    return max(2, columns), max(2, rows)


class FrameReader:
    """Puts messages together from the pieces they come in."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[Kind, bytes]]:
        """Take a piece and yield the messages that are whole now; raises `BadFrameError`."""
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

"""Creates session ids (UUIDs that begin with a time) and timestamps in milliseconds."""

import os
import time
from collections.abc import Callable

Clock = Callable[[], int]
"""A function that returns the time in milliseconds since the epoch."""


def now() -> int:
    """Return the time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def uuid7(milliseconds: int) -> str:
    """Return a new UUID version 7 (RFC 9562, section 5.7): 48 bits of time, then random bits."""
    return timed_uuid(milliseconds, os.urandom(10), 7)


def timed_uuid(milliseconds: int, rest: bytes, version: int) -> str:
    """Return a UUID of the given version that begins with a time, so that ids sort by age.

    ``rest`` contains the ten bytes that follow the time. Six of their bits are overwritten.
    """
    value = (milliseconds & (1 << 48) - 1) << 80 | int.from_bytes(rest, "big")
    value = value & ~(0xF << 76) | version << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def short_id(session_id: str) -> str:
    """Return the last 8 characters of a session's id: its name in lists and messages.

    The last characters are used because the first ones encode the time, so that all sessions of one
    day begin alike.
    """
    return session_id[-8:]

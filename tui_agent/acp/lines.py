"""What an editor writes, a line at a time: what is no message of the protocol is passed over, not fatal."""

import asyncio
import json
import logging
from typing import Any

log = logging.getLogger(__name__)


class MessageLines(asyncio.StreamReader):
    """A reader that gives lines which hold a message; the connection ends at any other JSON."""

    _overrun = False

    async def readuntil(self, separator: Any = b"\n") -> bytes:
        """Read as the inherited one, past lines that are JSON and no message."""
        while True:
            try:
                line = await super().readuntil(separator)
            except asyncio.LimitOverrunError:
                self._overrun = True
                raise
            except asyncio.IncompleteReadError as error:
                raise error if is_message(error.partial) else asyncio.IncompleteReadError(b"", None) from None
            # The end of a line that was too long for one piece says nothing.
            overrun, self._overrun = self._overrun, False
            if overrun or is_message(line):
                return line
            log.warning("a line of the editor is no message: %r", line[:200])


def is_message(line: bytes) -> bool:
    """Whether a line may be read as a message: a request, a notification or an answer. What is no JSON may, too."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return True
    if not isinstance(value, dict):
        return False
    method, error, number = value.get("method"), value.get("error"), value.get("id")
    return (
        isinstance(method, str | None)
        and isinstance(error, dict | None)
        and isinstance(number, str | int | float | None)
    )

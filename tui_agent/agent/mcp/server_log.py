"""What a server wrote to its standard error and the messages it sent, in a file of limited size: the newest stays."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

MAX_BYTES = 1_000_000
"""Size at which the older half of a log is dropped."""
DROPPED = "[older lines were dropped: a server's log holds 1 MB]\n"
_CHUNK = 65_536


class ServerLog:
    """The log of one connection; what an earlier one wrote is gone."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "r+b", buffering=0)
        self._size = 0

    def close(self) -> None:
        """Write no more."""
        self._file.close()

    def line(self, text: str) -> None:
        """Add a line of the program's own."""
        self.write(f"{text}\n".encode("utf-8", "replace"))

    def write(self, data: bytes) -> None:
        """Add bytes at the end."""
        if self._file.closed:
            return
        self._file.write(data)
        self._size += len(data)
        if self._size > MAX_BYTES:
            self._file.seek(-MAX_BYTES // 2, os.SEEK_END)
            kept = DROPPED.encode() + self._file.read().partition(b"\n")[2]
            self._file.seek(0)
            self._file.truncate()
            self._file.write(kept)
            self._size = len(kept)

    @contextmanager
    def standard_error(self) -> Iterator[TextIO]:
        """Give what a process can have as its standard error; what it wrote last is in the log when this ends."""
        loop = asyncio.get_running_loop()
        source, target = os.pipe()
        os.set_blocking(source, False)
        loop.add_reader(source, self._take, source)
        try:
            with os.fdopen(target, "w", encoding="utf-8") as stream:
                yield stream
        finally:
            loop.remove_reader(source)
            for _ in range(MAX_BYTES // _CHUNK):
                if not self._take(source):
                    break
            os.close(source)

    def _take(self, source: int) -> bool:
        """Move what can be read into the log; returns whether there was something."""
        data = b""
        with suppress(BlockingIOError):
            data = os.read(source, _CHUNK)
        self.write(data)
        return bool(data)

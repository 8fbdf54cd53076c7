"""The editor's unsaved text: what the model reads of a file is what the person sees of it."""

import asyncio
import contextlib
import hashlib
from pathlib import Path

from acp import RequestError
from acp.interfaces import Client
from acp.schema import FileSystemCapabilities

MAX_BYTES = 5_000_000
"""Larger files are read from disk: their text would travel as one message."""


class UnsavedText:
    """Reads files of one session through the editor, where it offers that, and has it save what an edit builds on."""

    def __init__(self, client: Client, able: FileSystemCapabilities, session: str) -> None:
        self._client = client
        self._able = able
        self._session = session
        self._told: dict[Path, bytes] = {}

    async def unsaved(self, path: Path) -> str | None:
        """Return the text of a file as the editor has it, None where that is what is on disk."""
        text = await self._differing(path)
        if text is not None:
            self._told[path] = _digest(text)
        return text

    async def save(self, path: Path) -> bool:
        """Have the editor save a file it has other text of; returns whether that is the text the model has read."""
        text = await self._differing(path) if self._able.write_text_file else None
        if text is None:
            return False
        with contextlib.suppress(RequestError, ConnectionError):
            await self._client.write_text_file(session_id=self._session, path=str(path), content=text)
            return self._told.get(path) == _digest(text)
        return False

    async def _differing(self, path: Path) -> str | None:
        on_disk = await asyncio.to_thread(_read, path) if self._able.read_text_file else None
        if on_disk is None:
            return None
        try:
            answer = await self._client.read_text_file(session_id=self._session, path=str(path))
        except (RequestError, ConnectionError):
            return None
        return None if _plain(answer.content) == _plain(on_disk) else answer.content


def _read(path: Path) -> str | None:
    """Return a file's text, None for what no editor would show as such."""
    try:
        return path.read_text(encoding="utf-8") if path.stat().st_size <= MAX_BYTES else None
    except (OSError, UnicodeDecodeError):
        return None


def _plain(text: str) -> str:
    """Return a text without what editors change on their own: the form of line ends."""
    return text.replace("\r\n", "\n")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

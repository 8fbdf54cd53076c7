"""Notifies a language server of changes to a project's files, and collects its error reports."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from tui_agent.files.inside import read_regular
from tui_agent.files.ripgrep import shared_files
from tui_agent.lazy import dataclass
from tui_agent.text_files.encodings import user_text
from tui_agent.tools.language_servers.answers import Finding, errors_of
from tui_agent.tools.language_servers.known import Language
from tui_agent.tools.language_servers.place import ServerPlace

MAX_FILE_BYTES = 4_000_000
"""Maximum size, in bytes, of a file that is opened in a language server."""
MAX_OPEN = 30
"""Maximum number of files that are open in a server. If there are more, the file that was sent
least recently is closed."""
MAX_OPENED = 10
"""Maximum number of created or changed files that one update opens in a server."""
MAX_WATCHED = 20_000
"""Maximum number of a project's files whose changes are sent to a server."""
CHECK_SECONDS = 20.0
"""Number of seconds to wait for a server's report on a file. If there is no report by then, no
errors are returned."""
UNSURE_SECONDS = 3.0
"""Number of seconds to wait for a report from a server whose reports have no version numbers. Such
a server may send no report if nothing changed."""
MORE_SECONDS = 0.5
"""Number of seconds to wait after each report for another report, because some language servers
report only syntax errors first."""
MAX_REPORTS = 10
"""Maximum number of further reports to wait for after the first report on one text of a file."""
_CREATED = 1
_CHANGED = 2
_DELETED = 3


@dataclass
class _Document:
    """A file that is open in the server, with the text last sent and the reported errors."""

    text: str
    version: int = 1
    errors: list[Finding] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)


class Documents:
    """The files of a project as one server knows them, either open or only watched for changes.

    ``notify`` sends the server a notification. It raises ServerError if the server has ended, and
    so do the coroutine methods that use it.
    """

    def __init__(
        self,
        place: ServerPlace,
        language: Language,
        notify: Callable[[str, Mapping[str, Any]], Awaitable[None]],
    ) -> None:
        self._place = place
        self._language = language
        self._notify = notify
        self._open: dict[Path, _Document] = {}
        self._stamps: dict[str, tuple[int, int]] = {}
        self._numbers_reports = False
        self._updating = asyncio.Lock()

    async def record_files(self) -> None:
        """Record the state of the project's files. This must be called before the server starts."""
        self._stamps = await self._seen_files()

    async def send_changes(self) -> None:
        """Notify the server of project files created, changed or deleted since the last call.

        Also sends the texts of changed files that are open, and opens up to ``MAX_OPENED`` other
        files of the server's language that were created or changed.
        """
        async with self._updating:
            await self._send_changes()

    async def open(self, path: Path) -> None:
        """Send a file's text on disk to the language server, whether or not the file is open there.

        A file that can't be read, or that the server isn't allowed to see, is closed instead.
        """
        async with self._updating:
            await self._send(path, await asyncio.to_thread(self._content, path))

    async def errors(self, path: Path, text: str) -> list[Finding]:
        """Return the errors that the server reports for a file with the given text.

        Returns [] if there are none, if no report comes in time, or if the server isn't allowed to
        see the file.
        """
        async with self._updating:
            await self._send_changes()
            if await asyncio.to_thread(self._place.withholds, path):
                return []
            document = await self._send(path, text)
            seconds = CHECK_SECONDS if self._numbers_reports else UNSURE_SECONDS
            if document is None or not await is_set_in_time(document.heard, seconds):
                return []
            for _ in range(MAX_REPORTS):
                document.heard.clear()
                if not await is_set_in_time(document.heard, MORE_SECONDS):
                    break
            document.heard.set()
            return document.errors

    def hear(self, params: Mapping[str, Any]) -> None:
        """Record the errors that the server reports for an open file.

        Reports on older texts of the file are ignored. ``params`` are the parameters of
        ``textDocument/publishDiagnostics``.
        """
        path = self._place.path_of(str(params.get("uri")))
        document = self._open.get(path) if path is not None else None
        version = params.get("version")
        self._numbers_reports = self._numbers_reports or isinstance(version, int)
        if document is None or (isinstance(version, int) and version < document.version):
            return
        document.errors = errors_of(params.get("diagnostics"))
        document.heard.set()

    async def _send_changes(self) -> None:
        seen = await self._seen_files()
        before = self._stamps
        kinds = {name: _CREATED for name in seen if name not in before}
        kinds |= {name: _DELETED for name in before if name not in seen}
        kinds |= {name: _CHANGED for name in seen if before.get(name, seen[name]) != seen[name]}
        if not kinds:
            return
        changes = []
        opened = []
        written = []
        for name, kind in kinds.items():
            path = self._place.project / name
            changes.append({"uri": self._place.uri_of(path), "type": kind})
            if path in self._open:
                opened.append(path)
            if self._is_written(name, kind):
                written.append(path)
        await self._notify("workspace/didChangeWatchedFiles", {"changes": changes})
        for path in dict.fromkeys([*opened, *written[-MAX_OPENED:]]):
            await self._send(path, await asyncio.to_thread(self._content, path))
        # The state is stored only now, so that the next call sends the changes again if this one is
        # interrupted.
        self._stamps = seen

    def _is_written(self, name: str, kind: int) -> bool:
        """Return True if a file of the server's language was created or changed.

        Such files are opened, because servers notice changes late in files that are not open.
        """
        return kind != _DELETED and Path(name).suffix.lower() in self._language.suffixes

    async def _seen_files(self) -> dict[str, tuple[int, int]]:
        """Return the modification time (nanoseconds) and size (bytes) of the project's files.

        The keys are paths relative to the project. Files that git ignores are left out.
        """
        names = await shared_files(self._place.project, MAX_WATCHED)

        def look() -> dict[str, tuple[int, int]]:
            stamps = {}
            for name in names[:MAX_WATCHED]:
                stamp = _stamp(self._place.project / name)
                if stamp is not None:
                    stamps[name] = stamp
            return stamps

        return await asyncio.to_thread(look)

    async def _send(self, path: Path, text: str | None) -> _Document | None:
        """Open a file in the server with a text, or update its text there.

        If ``text`` is None, the file is closed.

        Returns the open document, None if it was closed.
        """
        known = self._open.pop(path, None)
        uri = self._place.uri_of(path)
        if text is None:
            if known is not None:
                await self._notify("textDocument/didClose", {"textDocument": {"uri": uri}})
            return None
        document = known or _Document(text)
        self._open[path] = document
        if known is None:
            kind = self._language.suffixes.get(path.suffix.lower(), "plaintext")
            item = {"uri": uri, "languageId": kind, "version": 1, "text": text}
            await self._notify("textDocument/didOpen", {"textDocument": item})
        elif known.text != text:
            document.text = text
            document.version += 1
            document.heard.clear()
            changed = {"uri": uri, "version": document.version}
            change = {"textDocument": changed, "contentChanges": [{"text": text}]}
            await self._notify("textDocument/didChange", change)
        if len(self._open) > MAX_OPEN:
            oldest = next(iter(self._open))
            del self._open[oldest]
            closed = {"uri": self._place.uri_of(oldest)}
            await self._notify("textDocument/didClose", {"textDocument": closed})
        return document

    def _content(self, path: Path) -> str | None:
        """Return a file's text; None if the server must not see it, or if it can't be read."""
        if self._place.withholds(path):
            return None
        data = read_regular(path, MAX_FILE_BYTES + 1)
        if data is None or len(data) > MAX_FILE_BYTES:
            return None
        return user_text(data)


async def is_set_in_time(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event for at most ``seconds``. Returns True if it was set by then."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        state = os.lstat(path)
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size

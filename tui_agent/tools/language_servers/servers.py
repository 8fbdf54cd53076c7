"""Starts a session's language servers on first use, and limits how many run at once."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from tui_agent.lazy import dataclass
from tui_agent.tools.language_servers.connection import ServerError
from tui_agent.tools.language_servers.known import Language, ServerCommand
from tui_agent.tools.language_servers.place import ServerPlace
from tui_agent.tools.language_servers.server import LanguageServer
from tui_agent.tools.language_servers.settings import CodeSettings

MAX_RUNNING = 4
"""Maximum number of a project's servers that run at once. Before another one starts, the least
recently used one is ended."""
MAX_FAILURES = 3
"""Number of failed starts and unexpected ends after which a language server isn't started again in
the session."""

_Key = tuple[Path, str]
"""Key of a running server, which is the project's directory and the language's name."""


@dataclass
class LanguageServers:
    """Keeps the running servers by project and language, the most recently used one last."""

    settings: CodeSettings
    _running: dict[_Key, LanguageServer] = field(default_factory=dict)
    _failures: Counter[_Key] = field(default_factory=Counter)
    _starting: defaultdict[_Key, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )

    async def running(
        self, command: ServerCommand, place: ServerPlace, report: Callable[[str], None]
    ) -> LanguageServer:
        """Return the server for a command's language, starting the server if it isn't running.

        ``report`` shows the user that a server is being started. If ``MAX_RUNNING`` servers are
        running for the project, the least recently used one is ended. Raises ServerError if the
        server doesn't start, or has failed too often.
        """
        key = (place.project, command.language.name)
        async with self._starting[key]:
            server = self._running.pop(key, None)
            if server is not None and not server.is_running:
                await server.aclose()
                self._failures[key] += 1
                server = None
            if server is None:
                report(f"Starting {command.name}.\n")
                server = await self._start(key, command, place)
            self._running[key] = server
            return server

    async def _start(self, key: _Key, command: ServerCommand, place: ServerPlace) -> LanguageServer:
        if self._failures[key] >= MAX_FAILURES:
            raise ServerError(
                f"failed {MAX_FAILURES} times and is not started again in this session"
            )
        others = [other for other in self._running if other[0] == place.project]
        if len(others) >= MAX_RUNNING:
            await self._running.pop(others[0]).aclose()
        server = LanguageServer(command, place, self.settings.timeout)
        try:
            await server.start()
        except ServerError:
            self._failures[key] += 1
            raise
        return server

    def of(self, project: Path, language: Language) -> LanguageServer | None:
        """Return the running server for a language in a project; None if it isn't running."""
        server = self._running.get((project, language.name))
        return server if server is not None and server.is_running else None

    async def aclose(self, project: Path) -> None:
        """End the servers of a project."""
        for key in [key for key in self._running if key[0] == project]:
            await self._running.pop(key).aclose()

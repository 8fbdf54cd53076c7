"""Starts and ends the process of one language server for a project, and sends it requests.

The server runs in the sandbox. Without a sandbox, the server runs only if the user's settings name
it.
"""

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from tui_agent.lazy import cached_property, dataclass
from tui_agent.path_checks import real_path
from tui_agent.processes.environment import command_environment
from tui_agent.processes.own_programs import OWN_PLACES, find_program, limited
from tui_agent.processes.process import Command
from tui_agent.sandbox import Launch, Sandbox, SandboxError, View
from tui_agent.tools.language_servers.connection import Connection, RefusedError, ServerError
from tui_agent.tools.language_servers.documents import Documents, is_set_in_time
from tui_agent.tools.language_servers.known import ServerCommand
from tui_agent.tools.language_servers.place import ServerPlace
from tui_agent.version import __version__

MEMORY_KILOBYTES = 4 * 1024 * 1024
"""Memory limit of a language server, in KiB. In large projects, rust-analyzer and pyright use up to
2 GiB."""
START_SECONDS = 60.0
"""Time limit, in seconds, for the start of a language server and its first answer."""
LOADING_SECONDS = 60.0
"""Number of seconds after a server's start during which requests wait until it has loaded the
project."""
FIRST_REPORT_SECONDS = 0.5
"""Number of seconds that the first request waits for a server to report that it is loading the
project."""
MAX_LOADING = 1_000
"""Maximum number of progress tokens of a language server that are remembered."""
MAX_TOKEN = 100
"""Maximum number of characters of a progress token."""
TRIES = 3
"""Maximum number of times that a request is sent if the server cancels it."""
_TRY_AGAIN = frozenset({-32801, -32802})
"""Error codes for requests that the server cancelled: ContentModified and ServerCancelled."""
_START = "start"
"""Token that is in ``LanguageServer._loading`` until the server logs that it has loaded the
project."""

CAPABILITIES = {
    "general": {"positionEncodings": ["utf-16"]},
    "window": {"workDoneProgress": True},
    "workspace": {
        "applyEdit": False,
        "configuration": True,
        "workspaceFolders": True,
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "symbol": {},
    },
    "textDocument": {
        "synchronization": {},
        "publishDiagnostics": {"versionSupport": True},
        "definition": {"linkSupport": True},
        "implementation": {"linkSupport": True},
        "references": {},
        "hover": {"contentFormat": ["plaintext", "markdown"]},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "callHierarchy": {},
    },
    "experimental": {"serverStatusNotification": True},
}


@dataclass
class LanguageServer:
    """A language server's process, and the connection to it.

    Methods that use the server raise ServerError if anything goes wrong. ``capabilities`` are the
    ones that the server announced when it started.
    """

    command: ServerCommand
    place: ServerPlace
    timeout: float
    """Time limit for an answer of the server, in seconds."""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    _connection: Connection | None = None
    _life: "asyncio.Task[None] | None" = None
    _loading: set[str] = field(default_factory=set)
    _loaded: asyncio.Event = field(default_factory=asyncio.Event)
    _has_reported: asyncio.Event = field(default_factory=asyncio.Event)
    _loading_deadline: float = 0.0
    """Time, by the event loop's clock, until which requests wait for the server to load the
    project."""

    @property
    def name(self) -> str:
        return self.command.name

    @property
    def is_running(self) -> bool:
        return self._connection is not None and not self._connection.why_ended

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    @cached_property
    def documents(self) -> Documents:
        """The project's files in the state that was last sent to the server."""
        return Documents(self.place, self.command.language, self._notify)

    async def start(self) -> None:
        await self.documents.record_files()
        launch = await self._launch()
        command = Command(
            launch.arguments if launch else self._words,
            self.place.project,
            self._with_own_programs(launch.environment) if launch else self._environment,
            timeout=0,
            descriptors=launch.descriptors if launch else (),
        )
        try:
            self._connection = Connection(command, self._hear, self._answer)
        except OSError as error:
            await self._finish(launch)
            raise ServerError(f"could not be started: {error.strerror or error}") from None
        self._life = asyncio.create_task(self._live(self._connection, launch))
        try:
            await self._shake_hands(self._connection)
        except BaseException:
            await asyncio.shield(self.aclose())
            raise

    async def aclose(self) -> None:
        if self._connection is not None:
            self._connection.end("was ended")
        if self._life is not None:
            await asyncio.wait([self._life])

    async def _notify(self, method: str, params: Mapping[str, Any]) -> None:
        await self._running().notify(method, params)

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """Wait until the server has loaded the project, send a request, and return the result.

        The wait ends `LOADING_SECONDS` after the server's start at the latest. If the server
        cancels the request, it is sent again, at most ``TRIES`` times in all.
        """
        connection = self._running()
        for _ in range(TRIES - 1):
            await self._wait_until_loaded()
            try:
                return await connection.request(method, params, self.timeout)
            except RefusedError as error:
                if error.code not in _TRY_AGAIN:
                    raise
        return await connection.request(method, params, self.timeout)

    # -- start and end -----------------------------------------------------------------------------

    @property
    def _words(self) -> list[str]:
        return limited(*self.command.words, kilobytes=MEMORY_KILOBYTES)

    async def _launch(self) -> Launch | None:
        """Prepare the sandbox for the server, and return it; None if the server runs without one.

        Raises ServerError if the server needs a sandbox and there is none, or if it can't be
        started in the sandbox.
        """
        sandbox = self.place.sandbox
        in_sandbox = await asyncio.to_thread(lambda: self.place.in_sandbox)
        if sandbox is None or not in_sandbox:
            if not self.command.is_users or (sandbox is not None and sandbox.refusal()):
                raise ServerError("runs only in a sandbox, and there is none")
            return None
        if hidden := await asyncio.to_thread(self._hidden, sandbox):
            raise ServerError(
                f"can't be seen in the sandbox: add {hidden} to [sandbox] read in config.toml"
            )
        project = self.place.project
        try:
            return await sandbox.launch(
                self._words,
                project,
                project,
                View(reading=self.place.reading),
                self._environment,
                live=True,
                keeps_caches=False,
            )
        except (SandboxError, OSError) as error:
            raise ServerError(f"could not be started in the sandbox: {error}") from None

    def _hidden(self, sandbox: Sandbox) -> Path | None:
        """Return the directory of the server's program if the sandbox hides it, or None."""
        program = find_program(self.command.words[0], environ=self._environment)
        if program is None:
            return None
        for path in (Path(program), real_path(program)):
            inside = path.is_relative_to(self.place.project)
            if not inside and not sandbox.shows(path, self.place.project):
                return path.parent
        return None

    @property
    def _environment(self) -> dict[str, str]:
        return command_environment(self.place.environment)

    def _with_own_programs(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the environment with the project's program directories first on ``PATH``.

        The language server then finds the Python interpreter of the project's virtual environment.
        """
        own = [str(self.place.root / place) for place in OWN_PLACES]
        path = os.pathsep.join([*own, environment.get("PATH", os.defpath)])
        return {**environment, "PATH": path}

    async def _live(self, connection: Connection, launch: Launch | None) -> None:
        """Wait until the server has ended, then close the connection and the sandbox."""
        await connection.ended.wait()
        self._loaded.set()
        await connection.aclose()
        await self._finish(launch)

    async def _finish(self, launch: Launch | None) -> None:
        if launch is not None and self.place.sandbox is not None:
            await self.place.sandbox.finish(launch, "", None)

    async def _shake_hands(self, connection: Connection) -> None:
        uri = self.place.root.as_uri()
        hello = {
            "processId": None,
            "clientInfo": {"name": "tui-agent", "version": __version__},
            "rootUri": uri,
            "workspaceFolders": self._folders(),
            "capabilities": CAPABILITIES,
        }
        answer = await connection.request("initialize", hello, START_SECONDS)
        able = answer.get("capabilities") if isinstance(answer, dict) else None
        if not isinstance(able, dict):
            raise ServerError("did not announce its capabilities")
        self.capabilities = able
        self._loading_deadline = asyncio.get_running_loop().time() + LOADING_SECONDS
        if self.command.ready_words:
            self._loading.add(_START)
        if not self.command.loads_first:
            self._has_reported.set()
        await connection.notify("initialized", {})

    def _folders(self) -> list[dict[str, str]]:
        return [{"uri": self.place.root.as_uri(), "name": self.place.root.name}]

    def _running(self) -> Connection:
        if self._connection is None:
            raise ServerError("does not run")
        return self._connection

    async def _wait_until_loaded(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._has_reported.is_set():
            # Most language servers report right after their start that they are loading the
            # project, so wait a moment for this report.
            await is_set_in_time(self._has_reported, FIRST_REPORT_SECONDS)
            self._has_reported.set()
        if self._loading and loop.time() < self._loading_deadline:
            await is_set_in_time(self._loaded, self._loading_deadline - loop.time())
            self._loading.discard(_START)

    # -- messages from the server ------------------------------------------------------------------

    def _hear(self, method: str, params: Any) -> None:
        if not isinstance(params, dict):
            return
        if method == "textDocument/publishDiagnostics":
            self.documents.hear(params)
        elif method == "window/logMessage" and self.command.ready_words:
            if re.match(self.command.ready_words, str(params.get("message"))):
                self._set_loading(_START, busy=False)
        elif not self.command.loads_first:
            return
        elif method == "$/progress" and isinstance(value := params.get("value"), dict):
            self._set_loading(str(params.get("token"))[:MAX_TOKEN], busy=value.get("kind") != "end")
        elif method == "experimental/serverStatus":
            self._set_loading(method, busy=params.get("quiescent") is False)

    def _set_loading(self, token: str, *, busy: bool) -> None:
        if not busy:
            self._loading.discard(token)
        elif len(self._loading) < MAX_LOADING:
            self._loading.add(token)
        self._has_reported.set()
        if self._loading:
            self._loaded.clear()
        else:
            self._loaded.set()

    def _answer(self, method: str, params: Any) -> Any:
        """Return the result for a request from the server. Requests for edits are refused.

        Raises LookupError for an unknown method.
        """
        match method:
            case "workspace/applyEdit":
                return {"applied": False, "failureReason": "Files are only read here."}
            case "workspace/configuration":
                items = params.get("items") if isinstance(params, dict) else None
                return [None] * min(len(items), MAX_LOADING) if isinstance(items, list) else []
            case "workspace/workspaceFolders":
                return self._folders()
            case "window/showDocument":
                return {"success": False}
            case (
                "client/registerCapability"
                | "client/unregisterCapability"
                | "window/showMessageRequest"
                | "window/workDoneProgress/create"
            ):
                return None
        raise LookupError(method)

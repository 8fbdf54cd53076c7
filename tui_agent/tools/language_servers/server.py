"""One language server in a project: kept up to date with the files, and asked about places in them."""

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from tui_agent.files.inside import read_regular
from tui_agent.files.ripgrep import shared_files
from tui_agent.files.secret_files import is_secret_file
from tui_agent.lazy import dataclass
from tui_agent.path_checks import real_path
from tui_agent.permission import rule_path
from tui_agent.processes.environment import command_environment
from tui_agent.processes.own_programs import OWN_PLACES, find_program, limited
from tui_agent.processes.process import Command
from tui_agent.sandbox import Launch, Sandbox, SandboxError, View
from tui_agent.sandbox.view import RuleOfReading
from tui_agent.text_files.encodings import user_text
from tui_agent.tools.language_servers.connection import Connection, RefusedError, ServerError
from tui_agent.tools.language_servers.known import ServerCommand
from tui_agent.version import __version__

MEMORY_KILOBYTES = 4 * 1024 * 1024
"""Memory of a server's process; rust-analyzer and pyright take one or two gigabytes of large projects."""
START_SECONDS = 60.0
"""Seconds a server may take until it shakes hands."""
LOADING_SECONDS = 60.0
"""Seconds after its start that are waited for a server that says it is loading."""
FIRST_WORD_SECONDS = 0.5
"""Seconds a started server is given to say that it is loading."""
MAX_FILE_BYTES = 4_000_000
"""A larger file is not opened in a server."""
MAX_OPEN = 30
"""Files that are open in a server at once."""
MAX_OPENED = 10
"""Written files that are opened at once."""
MAX_WATCHED = 20_000
"""Files of a project whose changes a server is told of."""
MAX_LOADING = 1_000
"""Things a server says it is at that are remembered."""
TRIES = 3
_TRY_AGAIN = frozenset({-32801, -32802})
"""Codes of answers that a change or the loading of the project came in between of."""
_START = "start"
_CREATED = 1
_CHANGED = 2
_DELETED = 3

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
        "definition": {"linkSupport": True},
        "implementation": {"linkSupport": True},
        "references": {},
        "hover": {"contentFormat": ["plaintext", "markdown"]},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "callHierarchy": {},
    },
    "experimental": {"serverStatusNotification": True},
}


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """Where a server works, as commands of the session do."""

    project: Path
    environment: Mapping[str, str]
    sandbox: Sandbox | None
    reading: RuleOfReading | None = None
    """What rules say about reading files, None where they name none."""
    stands_for: Path | None = None
    """The project that this one is a copy of: its place in the sandbox."""

    @property
    def root(self) -> Path:
        """The project as the server sees it."""
        if self.stands_for is not None and self.in_sandbox and self._is_at_its_place:
            return self.stands_for
        return self.project

    def keeps_back(self, path: Path) -> bool:
        """Return whether a file is kept from programs: it may hold secrets, or rules are against reading it."""
        if is_secret_file(path):
            return True
        return self.reading is not None and bool(self.reading(rule_path(path, self.project)))

    @property
    def in_sandbox(self) -> bool:
        return self.sandbox is not None and self.sandbox.active

    @property
    def _is_at_its_place(self) -> bool:
        return self.sandbox is not None and self.sandbox.state.kind == "bubblewrap"


@dataclass(slots=True)
class _Document:
    """A file as it was last sent."""

    text: str
    version: int = 1


@dataclass(slots=True)
class LanguageServer:
    """A server that runs. Errors of every kind are ServerError."""

    command: ServerCommand
    place: ServerPlace
    timeout: float
    """Seconds for an answer."""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    _connection: Connection | None = None
    _life: "asyncio.Task[None] | None" = None
    _documents: dict[Path, _Document] = field(default_factory=dict)
    _stamps: dict[str, tuple[int, int]] = field(default_factory=dict)
    _loading: set[str] = field(default_factory=set)
    _loaded: asyncio.Event = field(default_factory=asyncio.Event)
    _spoke: asyncio.Event = field(default_factory=asyncio.Event)
    _patience: float = 0.0
    """The loop's time until which a loading server is waited for."""
    _updating: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def name(self) -> str:
        return self.command.name

    @property
    def is_running(self) -> bool:
        return self._connection is not None and not self._connection.why_ended

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    async def start(self) -> None:
        self._stamps = await self._seen_files()
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

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """Return the result of a request, once the server has loaded the project."""
        connection = self._running()
        for _ in range(TRIES - 1):
            await self._wait_until_loaded()
            try:
                return await connection.request(method, params, self.timeout)
            except RefusedError as error:
                if error.code not in _TRY_AGAIN:
                    raise
        return await connection.request(method, params, self.timeout)

    # -- files ----------------------------------------------------------------------------------------------------

    def uri_of(self, path: Path) -> str:
        if path.is_relative_to(self.place.project):
            return (self.place.root / path.relative_to(self.place.project)).as_uri()
        return path.as_uri()

    def path_of(self, uri: str) -> Path | None:
        """Return the file of an address, None for what is no file."""
        try:
            parts = urlsplit(uri)
            path = Path(os.path.normpath(os.fsdecode(unquote_to_bytes(parts.path))))
        except ValueError:
            return None
        if parts.scheme != "file" or not path.is_absolute() or "\0" in str(path):
            return None
        if path.is_relative_to(self.place.root):
            return self.place.project / path.relative_to(self.place.root)
        return path

    async def tell_changes(self) -> None:
        """Tell the server which files of the project have changed since the last time."""
        async with self._updating:
            await self._tell_changes()

    async def open(self, path: Path) -> None:
        """Have a file open in the server, as it is now."""
        async with self._updating:
            await self._open(path)

    async def _tell_changes(self) -> None:
        seen = await self._seen_files()
        before = self._stamps
        self._stamps = seen
        kinds = {name: _CREATED for name in seen if name not in before}
        kinds |= {name: _DELETED for name in before if name not in seen}
        kinds |= {name: _CHANGED for name in seen if before.get(name, seen[name]) != seen[name]}
        if not kinds:
            return
        changes = [
            {"uri": self.uri_of(self.place.project / name), "type": kind}
            for name, kind in kinds.items()
        ]
        await self._running().notify("workspace/didChangeWatchedFiles", {"changes": changes})
        opened = [name for name in kinds if self.place.project / name in self._documents]
        written = [name for name, kind in kinds.items() if self._is_new(name, kind)]
        for name in dict.fromkeys([*opened, *written[-MAX_OPENED:]]):
            await self._open(self.place.project / name)

    def _is_new(self, name: str, kind: int) -> bool:
        """Whether a file was written in the server's language: servers read one late that is not open."""
        return kind != _DELETED and Path(name).suffix.lower() in self.command.language.suffixes

    async def _seen_files(self) -> dict[str, tuple[int, int]]:
        """Return time and size of the files in the project, without those that git ignores."""
        names = await shared_files(self.place.project, MAX_WATCHED)

        def look() -> dict[str, tuple[int, int]]:
            stamps = ((name, _stamp(self.place.project / name)) for name in names[:MAX_WATCHED])
            return {name: stamp for name, stamp in stamps if stamp is not None}

        return await asyncio.to_thread(look)

    async def _open(self, path: Path) -> None:
        """Send a file as it is now; one that is gone or kept back is closed."""
        data = await asyncio.to_thread(self._content, path)
        known = self._documents.pop(path, None)
        uri = self.uri_of(path)
        connection = self._running()
        if data is None:
            if known is not None:
                await connection.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
            return
        text = user_text(data)
        self._documents[path] = document = known or _Document(text)
        if known is None:
            kind = self.command.language.suffixes.get(path.suffix.lower(), "plaintext")
            item = {"uri": uri, "languageId": kind, "version": 1, "text": text}
            await connection.notify("textDocument/didOpen", {"textDocument": item})
        elif known.text != text:
            document.text = text
            document.version += 1
            item = {"uri": uri, "version": document.version}
            change = {"textDocument": item, "contentChanges": [{"text": text}]}
            await connection.notify("textDocument/didChange", change)
        if len(self._documents) > MAX_OPEN:
            oldest = next(iter(self._documents))
            del self._documents[oldest]
            item = {"uri": self.uri_of(oldest)}
            await connection.notify("textDocument/didClose", {"textDocument": item})

    def _content(self, path: Path) -> bytes | None:
        """Return what a file holds, None where the server is not to know it."""
        if self.place.keeps_back(path):
            return None
        data = read_regular(path, MAX_FILE_BYTES + 1)
        return data if data is not None and len(data) <= MAX_FILE_BYTES else None

    # -- its life -------------------------------------------------------------------------------------------------

    @property
    def _words(self) -> list[str]:
        return limited(*self.command.words, kilobytes=MEMORY_KILOBYTES)

    async def _launch(self) -> Launch | None:
        """Lay out the view of the server; None where it runs without one."""
        sandbox = self.place.sandbox
        in_sandbox = await asyncio.to_thread(lambda: self.place.in_sandbox)
        if sandbox is None or not in_sandbox:
            if not self.command.is_users or (sandbox is not None and sandbox.refusal()):
                raise ServerError("runs in the sandbox only, and there is none")
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
        """Return the directory of the program that the sandbox does not show, None where it shows it."""
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
        """Return an environment in which the project's own programs come first, its Python with its packages."""
        own = [str(self.place.root / place) for place in OWN_PLACES]
        path = os.pathsep.join([*own, environment.get("PATH", os.defpath)])
        return {**environment, "PATH": path}

    async def _live(self, connection: Connection, launch: Launch | None) -> None:
        """Wait for the end of the server, however it comes, and clear up."""
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
            raise ServerError("does not say what it can do")
        self.capabilities = able
        self._patience = asyncio.get_running_loop().time() + LOADING_SECONDS
        if self.command.ready_words:
            self._loading.add(_START)
        if not self.command.loads_first:
            self._spoke.set()
        await connection.notify("initialized", {})

    def _folders(self) -> list[dict[str, str]]:
        return [{"uri": self.place.root.as_uri(), "name": self.place.root.name}]

    def _running(self) -> Connection:
        if self._connection is None:
            raise ServerError("does not run")
        return self._connection

    async def _wait_until_loaded(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._spoke.is_set():
            # Most say at once that they begin to load.
            await _in_time(self._spoke, FIRST_WORD_SECONDS)
            self._spoke.set()
        if self._loading and loop.time() < self._patience:
            await _in_time(self._loaded, self._patience - loop.time())
            self._loading.discard(_START)

    # -- what it says ---------------------------------------------------------------------------------------------

    def _hear(self, method: str, params: Any) -> None:
        if not isinstance(params, dict):
            return
        if method == "window/logMessage" and self.command.ready_words:
            if re.match(self.command.ready_words, str(params.get("message"))):
                self._note(_START, busy=False)
        elif not self.command.loads_first:
            return
        elif method == "$/progress" and isinstance(value := params.get("value"), dict):
            self._note(str(params.get("token")), busy=value.get("kind") != "end")
        elif method == "experimental/serverStatus":
            self._note(method, busy=params.get("quiescent") is False)

    def _note(self, token: str, *, busy: bool) -> None:
        if not busy:
            self._loading.discard(token)
        elif len(self._loading) < MAX_LOADING:
            self._loading.add(token)
        self._spoke.set()
        if self._loading:
            self._loaded.clear()
        else:
            self._loaded.set()

    def _answer(self, method: str, params: Any) -> Any:
        """Return the answer to a request of the server's. It changes nothing: edits are refused."""
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


async def _in_time(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, no longer than some seconds."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        state = os.lstat(path)
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size

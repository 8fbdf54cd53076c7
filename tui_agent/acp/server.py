"""The methods of the Agent Client Protocol: open, prompt, list, configure and close sessions.

Each open session is an `EditorSession`, which runs the agent; stored ones are listed and deleted in
the session store. The settings files are read again before every prompt.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, Protocol, TypeVar

from acp import PROTOCOL_VERSION, RequestError, helpers
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    AuthenticateResponse,
    AuthMethodAgent,
    AvailableCommand,
    AvailableCommandInput,
    ClientCapabilities,
    ClientSessionCapabilities,
    CloseSessionResponse,
    DeleteSessionResponse,
    ForkSessionResponse,
    HttpMcpServer,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    McpServerStdio,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
    SseMcpServer,
    TerminalAuthMethod,
    UnstructuredCommandInput,
)
from pydantic import Field, ValidationError

from tui_agent.acp.session import KEYLESS, NEEDS_KEY, EditorSession, Notify
from tui_agent.acp.updates import invalid, read_prompt
from tui_agent.agent.agent import Agent
from tui_agent.agent.mcp.settings import McpServerSettings, first_mistake
from tui_agent.agent.permissions import MODE_HELP
from tui_agent.app.services import AppServices, OpenHow, OpenRequest
from tui_agent.errors import UserFacingError
from tui_agent.model.naming import NameStanding
from tui_agent.path_checks import is_directory
from tui_agent.session.effort import DEFAULT_EFFORT, Effort
from tui_agent.session.errors import SessionNotFound
from tui_agent.session.store import Store
from tui_agent.version import __version__
from tui_agent.whole_numbers import whole_number

PAGE_SIZE = 50
"""Maximum number of sessions in one response. The editor requests further ones with a cursor."""
_NOT_FOUND = -32002
_FAILED = -32603
"""Codes of errors in the protocol."""
_KEYS = "keys"
_TERMINAL = "terminal"
"""Ids of the login methods that the editor can offer."""

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger(__name__)


class _SessionCapabilities(ClientSessionCapabilities):
    compaction: dict[str, Any] | None = None


class _Capabilities(ClientCapabilities):
    session: _SessionCapabilities | None = None


class Introduction(InitializeRequest):
    """An editor's first request, including fields of the protocol that the SDK does not read yet."""

    client_capabilities: Annotated[_Capabilities | None, Field(alias="clientCapabilities")] = None


class SessionFactory(Protocol):
    """Builds the services for an editor's sessions. The command line implements it."""

    store: Store
    demo: bool

    def services(self, cwd: Path, servers: Mapping[str, McpServerSettings]) -> AppServices:
        """Return a controller's services for sessions in ``cwd``.

        ``servers`` are the editor's MCP servers.
        """
        ...

    async def models(self, *, refresh: bool = False) -> Sequence[str]:
        """Return the ids of the usable models; cached, unless ``refresh`` is set."""
        ...

    def follow_settings(self, agents: Iterable[Agent]) -> str:
        """Read the settings again and apply changed ones to ``agents``; return "" on success.

        If the settings are invalid, apply nothing and return a sentence that says why.
        """
        ...


def reports_errors(method: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """Decorate a method to raise every exception as an error of the protocol.

    The error contains the exception's message. Without this, the SDK would send no response for
    exceptions whose values JSON can't hold.
    """

    @wraps(method)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await method(*args, **kwargs)
        except RequestError:
            raise
        except SessionNotFound as error:
            raise RequestError(_NOT_FOUND, str(error)) from error
        except UserFacingError as error:
            raise RequestError(_FAILED, str(error)) from error
        except Exception as error:
            log.exception("A request from the editor failed.")
            raise RequestError(_FAILED, f"{type(error).__name__}: {error}") from error

    return wrapper


class EditorAgent:
    """The agent's side of the protocol, for one editor."""

    def __init__(self, factory: SessionFactory) -> None:
        self._factory = factory
        self._client: Client | None = None
        self._open: dict[str, EditorSession] = {}
        self._settings_problem = ""
        self._capabilities = ClientCapabilities()
        self.notify: Notify | None = None
        """Sends a notification for which the SDK has no class; None if that is not possible."""

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def aclose(self) -> None:
        for session_id in list(self._open):
            await self._close(session_id)

    # -- connection and login

    async def initialize(
        self,
        protocol_version: int,  # noqa: ARG002 - one version is spoken here
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,  # noqa: ARG002 - every editor is treated the same
        **_more: Any,
    ) -> InitializeResponse:
        self._capabilities = client_capabilities or ClientCapabilities()
        description = "Set a provider's API key in this agent's environment or in config.toml, then choose this."
        methods: list[Any] = [
            AuthMethodAgent(id=_KEYS, name="Use a configured API key", description=description)
        ]
        if self._capabilities.auth is not None and self._capabilities.auth.terminal:
            description = "Asks for a provider and its API key, and saves them in config.toml."
            terminal = TerminalAuthMethod(
                type="terminal",
                id=_TERMINAL,
                name="Enter an API key",
                description=description,
                args=["--login"],
            )
            methods.append(terminal)
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(
                    image=True, audio=False, embedded_context=True
                ),
                mcp_capabilities=McpCapabilities(http=True, sse=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    delete=SessionDeleteCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                    fork=SessionForkCapabilities(),
                ),
            ),
            auth_methods=methods,
            agent_info=Implementation(name="tui-agent", title="tui-agent", version=__version__),
        )

    async def authenticate(self, method_id: str, **_more: Any) -> AuthenticateResponse | None:
        """Read the settings and look for API keys again.

        Raises `RequestError` if there is no API key, or the login method ``method_id`` is unknown.
        """
        if method_id not in {_KEYS, _TERMINAL}:
            raise invalid(f"Unknown login method {method_id!r}. Use {_KEYS} or {_TERMINAL}.")
        problem = self._factory.follow_settings(session.agent for session in self._open.values())
        await self._require_key(problem)
        return AuthenticateResponse()

    async def _require_key(self, problem: str = "") -> None:
        """Raise `RequestError` if there is no API key.

        ``problem`` says why the settings could not be read; "" if they could.
        """
        if not (
            self._factory.demo
            or await self._factory.models()
            or await self._factory.models(refresh=True)
        ):
            raise RequestError(NEEDS_KEY, problem or KEYLESS)

    # -- sessions

    @reports_errors
    async def new_session(
        self, cwd: str, mcp_servers: list[Any] | None = None, **_more: Any
    ) -> NewSessionResponse:
        directory = Path(cwd)
        if not directory.is_absolute() or not is_directory(directory):
            raise invalid(f"{cwd!r} is not the absolute path of a directory.")
        servers = _servers(mcp_servers)
        await self._require_key()
        place = await asyncio.to_thread(directory.resolve)
        request = OpenRequest(demo=self._factory.demo)
        opened = await self._open_session(request, place, servers)
        return NewSessionResponse(session_id=opened.agent.session.id, **await self._state(opened))

    @reports_errors
    async def load_session(
        self,
        cwd: str,  # noqa: ARG002 - a session keeps the directory it was created in
        session_id: str,
        mcp_servers: list[Any] | None = None,
        **_more: Any,
    ) -> LoadSessionResponse:
        """Open a session and send its conversation to the editor as updates."""
        opened = await self._reopen(session_id, mcp_servers)
        await opened.replay()
        return LoadSessionResponse(**await self._state(opened))

    @reports_errors
    async def resume_session(
        self,
        cwd: str,  # noqa: ARG002 - a session keeps the directory it was created in
        session_id: str,
        mcp_servers: list[Any] | None = None,
        **_more: Any,
    ) -> ResumeSessionResponse:
        """Open a session without sending its conversation, which the editor already has."""
        return ResumeSessionResponse(
            **await self._state(await self._reopen(session_id, mcp_servers))
        )

    @reports_errors
    async def fork_session(
        self,
        cwd: str,  # noqa: ARG002 - a copy keeps the directory of its session
        session_id: str,
        mcp_servers: list[Any] | None = None,
        **_more: Any,
    ) -> ForkSessionResponse:
        """Copy a session and open the copy; the original is not changed."""
        found = self._factory.store.session(session_id)
        request = OpenRequest(found.id, how=OpenHow.FORK)
        opened = await self._open_session(request, Path(found.cwd), _servers(mcp_servers))
        return ForkSessionResponse(session_id=opened.agent.session.id, **await self._state(opened))

    @reports_errors
    async def close_session(self, session_id: str, **_more: Any) -> CloseSessionResponse:
        self._session(session_id)
        await self._close(session_id)
        return CloseSessionResponse()

    @reports_errors
    async def delete_session(self, session_id: str, **_more: Any) -> DeleteSessionResponse:
        """Close and delete a session; its content is removed when the program ends."""
        was_open = session_id in self._open
        await self._close(session_id)
        try:
            await asyncio.to_thread(self._factory.store.delete, session_id)
        except SessionNotFound:
            # Closing a session without entries has deleted it.
            if not was_open:
                raise
        return DeleteSessionResponse()

    @reports_errors
    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_more: Any
    ) -> ListSessionsResponse:
        offset = whole_number(cursor or "0")
        if offset is None:
            raise invalid(f"{cursor!r} is not a cursor of an earlier response.")
        directory = None
        if cwd:
            directory = await asyncio.to_thread(Path(cwd).resolve)
        found = self._factory.store.sessions(cwd=directory, offset=offset, limit=PAGE_SIZE)
        rows = []
        for info in found:
            rows.append(
                SessionInfo(
                    session_id=info.id,
                    cwd=info.cwd,
                    title=(info.title or info.first_message)[:200] or None,
                    updated_at=datetime.fromtimestamp(info.updated_at / 1000, tz=UTC).isoformat(),
                )
            )
        return ListSessionsResponse(
            sessions=rows, next_cursor=str(offset + PAGE_SIZE) if len(found) == PAGE_SIZE else None
        )

    @reports_errors
    async def set_session_mode(
        self, session_id: str, mode_id: str, **_more: Any
    ) -> SetSessionModeResponse:
        agent = self._session(session_id).agent
        if mode_id in MODE_HELP:
            agent.change_mode(mode_id)
        elif not agent.choose_agent(mode_id):
            known = ", ".join(await _modes(agent))
            raise invalid(f"There is no mode {mode_id!r}. Use one of: {known}.")
        return SetSessionModeResponse()

    @reports_errors
    async def set_config_option(
        self,
        config_id: str,
        session_id: str,
        value: str | bool,  # noqa: FBT001 - defined by the protocol
        **_more: Any,
    ) -> SetSessionConfigOptionResponse:
        opened = self._session(session_id)
        agent = opened.agent
        match config_id, value:
            case "model", str() if value:
                verdict = await asyncio.to_thread(opened.controller.services.judge_model, value)
                if verdict.standing is NameStanding.IMPOSSIBLE:
                    raise invalid(verdict.sentence)
                agent.change_model(value)
            case "effort", "default":
                agent.change_effort(None)
            case "effort", str() if value in set(Effort):
                agent.change_effort(Effort(value))
            case _:
                raise invalid("Choose a model, or an effort that the model supports.")
        return SetSessionConfigOptionResponse(config_options=await self._options(agent))

    # -- prompts

    @reports_errors
    async def prompt(self, session_id: str, prompt: list[Any], **_more: Any) -> PromptResponse:
        opened = self._session(session_id)
        agent = opened.agent
        message = await read_prompt(prompt, agent.ports.cwd, agent.ports.put_blob)
        if not message.text.strip() and not message.attached:
            raise invalid("The prompt is empty.")
        problem = self._factory.follow_settings(session.agent for session in self._open.values())
        if problem and problem != self._settings_problem:
            opened.queue_update(
                helpers.update_agent_thought_text(f"{problem} The settings were not changed.\n")
            )
        self._settings_problem = problem
        return PromptResponse(stop_reason=await opened.prompt(message))

    async def cancel(self, session_id: str, **_more: Any) -> None:
        if (opened := self._open.get(session_id)) is not None:
            opened.cancel()

    # -- helpers

    async def _open_session(
        self, request: OpenRequest, cwd: Path, servers: Mapping[str, McpServerSettings]
    ) -> EditorSession:
        if self._client is None:
            raise RequestError(_FAILED, "The editor is not connected.")
        opened = EditorSession(
            self._client, self._factory.services(cwd, servers), self._capabilities
        )
        opened.notify = self.notify
        await opened.open(request)
        opened.options = lambda: self._options(opened.agent)
        self._open[opened.agent.session.id] = opened
        return opened

    async def _reopen(self, session_id: str, mcp_servers: list[Any] | None) -> EditorSession:
        servers = _servers(mcp_servers)
        opened = self._open.get(session_id)
        if opened is not None and opened.agent.session.info.entry_count == 0:
            # Closing a session without entries would delete it.
            return opened
        await self._close(session_id)
        found = self._factory.store.session(session_id)
        return await self._open_session(OpenRequest(found.id), Path(found.cwd), servers)

    async def _state(self, opened: EditorSession) -> dict[str, Any]:
        """Return a session's modes and options for the response that opens it.

        Also queues an update with the session's commands.
        """
        options = await self._options(opened.agent)
        known = await _modes(opened.agent)
        # Queued updates are sent after the response, because it tells the editor the session's id.
        commands = []
        for row in opened.controller.commands:
            commands.append(
                AvailableCommand(
                    name=row.name,
                    description=row.help or row.name,
                    input=AvailableCommandInput(UnstructuredCommandInput(hint=row.argument))
                    if row.argument
                    else None,
                )
            )
        opened.queue_update(helpers.update_available_commands(commands))
        modes = [
            SessionMode(id=name, name=name.capitalize(), description=text)
            for name, text in known.items()
        ]
        return {
            "modes": SessionModeState(current_mode_id=opened.agent.mode, available_modes=modes),
            "config_options": options,
        }

    async def _close(self, session_id: str) -> None:
        if (opened := self._open.pop(session_id, None)) is not None:
            await opened.aclose()

    def _session(self, session_id: str) -> EditorSession:
        if session_id not in self._open:
            raise invalid(f"The session {session_id!r} is not open here.")
        return self._open[session_id]

    async def _options(self, agent: Agent) -> list[Any]:
        names = dict.fromkeys([*filter(None, [agent.model]), *await self._factory.models()])
        if not names:
            return []
        rows: list[tuple[str, Literal["model", "thought_level"], str, Iterable[str]]]
        rows = [("model", "model", agent.model or next(iter(names)), names)]
        effort = agent.effort
        if effort.levels:
            if effort.chosen is not None:
                chosen = effort.chosen.nearest(effort.levels)
            else:
                chosen = None
            levels = (DEFAULT_EFFORT, *(level for level in Effort if level in effort.levels))
            rows.append(("effort", "thought_level", chosen or DEFAULT_EFFORT, levels))
        options = []
        for name, category, value, values in rows:
            options.append(
                SessionConfigOptionSelect(
                    id=name,
                    name=name.capitalize(),
                    category=category,
                    type="select",
                    current_value=value,
                    options=[SessionConfigSelectOption(value=one, name=one) for one in values],
                )
            )
        return options


async def _modes(agent: Agent) -> dict[str, str]:
    """Return the descriptions of the modes and of the user's own primary agents, by name."""
    with suppress(UserFacingError):
        await asyncio.to_thread(agent.ports.knowledge.load)
    known = {name.value: text for name, text in MODE_HELP.items()}
    for name, spec in agent.ports.knowledge.primaries.items():
        known.setdefault(name, spec.description or "an agent of your own")
    # The file that defines the current agent may have been removed.
    known.setdefault(agent.mode, "an agent of your own")
    return known


def _servers(given: Sequence[Any] | None) -> dict[str, McpServerSettings]:
    """Return the settings of the editor's MCP servers. Raises `RequestError` for invalid ones."""
    servers: dict[str, McpServerSettings] = {}
    for server in given or ():
        try:
            servers[server.name] = _server(server)
        except ValidationError as error:
            raise invalid(
                f"The server {server.name!r} can't be used: {first_mistake(error)}"
            ) from None
    return servers


def _server(server: Any) -> McpServerSettings:
    match server:
        case McpServerStdio():
            env = {variable.name: variable.value for variable in server.env}
            return McpServerSettings(command=server.command, args=tuple(server.args), env=env)
        case HttpMcpServer() | SseMcpServer():
            headers = {header.name: header.value for header in server.headers}
            kind = "sse" if isinstance(server, SseMcpServer) else None
            return McpServerSettings(url=server.url, headers=headers, type=kind)
        case _:
            raise invalid(f"The transport of the server {server.name!r} is not supported.")


class MessageLines(asyncio.StreamReader):
    """Reads the editor's lines.

    Skips JSON that isn't a message, because it would end the connection.
    """

    _overrun = False

    async def readuntil(self, separator: Any = b"\n") -> bytes:
        """Return the next line that is a message or not valid JSON, or the end of an overlong line.

        Raises the same exceptions as the base class.
        """
        while True:
            try:
                line = await super().readuntil(separator)
            except asyncio.LimitOverrunError:
                self._overrun = True
                raise
            except asyncio.IncompleteReadError as error:
                raise (
                    error if is_message(error.partial) else asyncio.IncompleteReadError(b"", None)
                ) from None
            # If a line was read in pieces, its last piece can't be checked alone.
            overrun = self._overrun
            self._overrun = False
            if overrun or is_message(line):
                return line
            log.warning("Ignored a line from the editor that is not a message: %r", line[:200])


def is_message(line: bytes) -> bool:
    """Return False for JSON that isn't a request, notification or response; otherwise True."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return True
    if not isinstance(value, dict):
        return False
    method = value.get("method")
    error = value.get("error")
    number = value.get("id")
    return (
        isinstance(method, str | None)
        and isinstance(error, dict | None)
        and isinstance(number, str | int | float | None)
    )

"""One connection to an MCP server: opens it, and converts the SDK's types to this program's types.

Starts the server's program, in the sandbox if its settings say so, or connects to its URL; writes
the server's log; repairs its messages (``leniency``); passes on its questions to the user.
``server`` decides when to connect, and what to do about a lost connection. Imports the SDK, but
only when a connection is opened.
"""

import asyncio
import errno
import json
import logging
import os
import warnings
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import field, replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TextIO

from tui_agent.agent.mcp.content import Reader
from tui_agent.agent.mcp.leniency import (
    repair_introduction,
    repair_line,
    repair_page,
    repair_tool_list,
    repair_tool_result,
)
from tui_agent.agent.mcp.records import (
    Content,
    LogLevel,
    McpError,
    McpPrompt,
    McpResource,
    PromptArgument,
    ServerMessage,
    ServerOffer,
    ToolInfo,
    shortened,
    tidy_schema,
)
from tui_agent.agent.mcp.sandbox_limits import SandboxLimits
from tui_agent.agent.mcp.settings import (
    ConnectionContext,
    McpServerSettings,
    ServerSpec,
    command_line,
    expanded,
)
from tui_agent.json_text import as_dict
from tui_agent.lazy import dataclass, frozen
from tui_agent.processes.own_programs import find_program
from tui_agent.sandbox import Grants, SandboxError, View
from tui_agent.tools.questions import Answer, Asker, ServerForm, question_of
from tui_agent.version import __version__

if TYPE_CHECKING:
    from mcp import Client, StdioServerParameters
    from mcp.client import IncomingMessage, Transport
    from mcp.shared.message import SessionMessage
    from mcp.types import (
        ElicitRequestParams,
        ElicitResult,
        LoggingMessageNotificationParams,
        Prompt,
        Resource,
        ResourceTemplate,
        Tool,
    )
    from pydantic import ValidationError


log = logging.getLogger(__name__)

MAX_BYTES = 1_000_000
"""Maximum size of a server's log, in bytes. A larger log is cut to its newer half."""
DROPPED = "[older lines were dropped: the log is limited to 1 MB]\n"
"""First line of a log file from which older lines were cut off."""
_CHUNK = 65_536
"""Number of bytes read from a server's standard error at once."""

MAX_DESCRIPTION = 8_000
"""Maximum characters of a tool's description. If it is cut, a note in it and ``/mcp`` say so."""

MAX_PAGES = 50
"""Maximum number of pages requested for one list. A server might never return the last page."""

MAX_NOISE = 500
"""Maximum number of characters that are logged of a line that is not an MCP message."""

SSE_SECONDS = 24 * 3600.0
"""Read timeout of SSE, in seconds. It is long, because servers are silent between requests."""

_NOT_STREAMABLE = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.METHOD_NOT_ALLOWED,
        HTTPStatus.NOT_ACCEPTABLE,
        HTTPStatus.GONE,
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        HTTPStatus.NOT_IMPLEMENTED,
    }
)
"""HTTP statuses by which servers that support only SSE refuse streamable HTTP."""

_LOST = frozenset({"Session terminated", "Connection closed"})
"""The SDK's error messages that mean that the connection is lost."""


class ServerLog:
    """The log file of one connection to a server. It replaces the log of the previous connection."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = os.fdopen(
            os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "r+b", buffering=0
        )
        self._size = 0

    def close(self) -> None:
        self._file.close()

    def line(self, text: str) -> None:
        self.write(f"{text}\n".encode("utf-8", "replace"))

    def write(self, data: bytes) -> None:
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
        """Yield a file for a process's standard error.

        Everything written to it is copied to the log.
        """
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
        """Copy the available output to the log. Returns True if there was some output."""
        data = b""
        with suppress(BlockingIOError):
            data = os.read(source, _CHUNK)
        self.write(data)
        return bool(data)


@frozen
class Listener:
    """Callbacks that a connection to an MCP server calls.

    ``asker`` returns the function that asks the user, None if there is no user. ``lost`` is called
    when the connection ends, ``changed`` when the server's lists may have changed. ``login`` is
    called with the address to open in the browser, ``refused`` with the HTTP status of a failed
    request, ``said`` with a log message, ``noise`` with a line of standard output that isn't an MCP
    message, and ``limited`` with the limits of the server's sandbox, which may explain a failure.
    """

    asker: Callable[[], Asker | None]
    lost: Callable[[], None]
    changed: Callable[[], None]
    login: Callable[[str], Awaitable[None]]
    refused: Callable[[int], None]
    said: Callable[[ServerMessage], None]
    noise: Callable[[str], None]
    limited: Callable[[SandboxLimits], None]


@asynccontextmanager
async def connect(
    spec: ServerSpec, around: ConnectionContext, listener: Listener
) -> AsyncIterator["Connection"]:
    """Connect to a server: start its program or connect to its URL, and initialize the protocol.

    The server is stopped or disconnected after the block. Raises McpConfigError if a variable in
    the settings is not set. Any other error (FileNotFoundError, SandboxError, McpError, errors of
    the SDK) may be raised alone or in an exception group.
    """
    settings = expanded(spec.settings, around.environ)
    async with AsyncExitStack() as stack:
        server_log = ServerLog(around.log_path(spec.name))
        stack.callback(server_log.close)
        handler = _MessageHandler(spec, listener, server_log)
        if settings.command is not None:
            from mcp import stdio_client

            errors = stack.enter_context(server_log.standard_error())
            program = await stack.enter_async_context(_program(spec, around, settings, handler))
            # Drops the SDK's messages about lines that it can't read: the server's log has them.
            logging.getLogger("mcp.client.stdio").addFilter(_is_not_parse_failure)
            client = await stack.enter_async_context(
                _client(spec, handler, stdio_client(program, errlog=errors))
            )
        else:
            client = await _reach(spec, around, settings, handler, stack)
        handler.connected = True
        subscription = asyncio.create_task(_subscribe(client, listener.changed))
        connection = Connection(spec, client, handler)
        try:
            await connection.set_log_level(settings.log_level)
            yield connection
        finally:
            subscription.cancel()
            await asyncio.wait([subscription])


@dataclass
class _MessageHandler:
    """Handles messages that a server sends unasked: questions, logs, changes of lists."""

    spec: ServerSpec
    listener: Listener
    log: ServerLog
    connected: bool = False
    """True once the protocol is initialized. If the connection ends earlier, the start failed."""

    open_questions: int = 0
    """Number of questions from the server that the user has not yet answered."""
    problems: list[str] = field(default_factory=list)
    """Sentences for the user about tools that can't be offered, or a server that offers nothing."""
    waiting: set[asyncio.Timeout] = field(default_factory=set)
    """Timeouts of the requests in progress. They don't run while the user answers a server's
    question."""

    @asynccontextmanager
    async def time_limit(self, seconds: float) -> AsyncIterator[None]:
        """Raise TimeoutError if the block takes more than ``seconds``.

        The clock stops while the user answers one of the server's questions. After the answer, the
        limit is the server's setting ``timeout``, counted from then.
        """
        async with asyncio.timeout(None if self.open_questions else seconds) as limit:
            self.waiting.add(limit)
            try:
                yield
            finally:
                self.waiting.discard(limit)

    @asynccontextmanager
    async def _asking(self) -> AsyncIterator[None]:
        self.open_questions += 1
        for limit in self.waiting:
            limit.reschedule(None)
        try:
            yield
        finally:
            self.open_questions -= 1
            until = asyncio.get_running_loop().time() + self.spec.settings.timeout
            if not self.open_questions:
                for limit in self.waiting:
                    limit.reschedule(until)

    async def elicit(self, context: object, params: "ElicitRequestParams") -> "ElicitResult":
        """Ask the user the server's question; return the answer, "cancel" if there is no user."""
        from mcp.types import ElicitResult

        del context
        ask = self.listener.asker()
        answer = Answer()
        if ask is not None:
            async with self._asking():
                answer = await ask(question_of(self.spec.name, params))
        values = None
        if answer.action == "accept" and params.mode == "form":
            values = dict(answer.values)
        return ElicitResult(action=answer.action, content=values)

    async def allow_host(self, name: str, port: int) -> str | None:
        """Ask the user whether the server may connect to a host; see `AllowHost`."""
        ask = self.listener.asker()
        if ask is None:
            return ""
        text = f"This MCP server of the project wants to connect to {name}:{port}."
        async with self._asking():
            answer = await ask(ServerForm(self.spec.name, text))
        if answer.action == "accept":
            return None
        return ""

    async def message(self, message: "IncomingMessage") -> None:
        if type(message).__name__.endswith("ListChangedNotification"):
            self.listener.changed()

    async def said(self, params: "LoggingMessageNotificationParams") -> None:
        text = params.data
        if not isinstance(text, str):
            text = json.dumps(text, ensure_ascii=False)
        if params.logger:
            text = f"{params.logger}: {text}"
        self.log.line(f"[{params.level}] {text}")
        self.listener.said(ServerMessage(params.level, text))

    def leave_out(self, problems: list[str]) -> None:
        """Report problems with the server's offer to the user and in the log.

        Each problem is one sentence.
        """
        for problem in problems:
            self.log.line(problem)
            self.listener.said(ServerMessage("warning", problem))
        self.problems += problems

    def noise(self, text: str) -> None:
        self.log.line(f"[standard output] {text[:MAX_NOISE]}")
        self.listener.noise(text)


def _client(
    spec: ServerSpec,
    handler: _MessageHandler,
    transport: "Transport",
    mode: Literal["auto", "legacy"] = "auto",
) -> "Client":
    from mcp import Client
    from mcp.types import Implementation, ListRootsResult, Root

    async def list_roots(context: object) -> ListRootsResult:
        del context
        return ListRootsResult(roots=[Root(uri=spec.cwd.as_uri(), name=spec.cwd.name or None)])

    return Client(
        _repaired(transport, handler),
        message_handler=handler.message,
        logging_callback=handler.said,
        log_level=spec.settings.log_level,
        list_roots_callback=list_roots,
        elicitation_callback=handler.elicit,
        client_info=Implementation(name="tui-agent", version=__version__),
        cache=None,
        mode=mode,
    )


@asynccontextmanager
async def _program(
    spec: ServerSpec,
    around: ConnectionContext,
    settings: McpServerSettings,
    handler: _MessageHandler,
) -> "AsyncIterator[StdioServerParameters]":
    """Yield the SDK's parameters for starting a server's program, in the sandbox if settings say so.

    The sandbox is closed after the block. Raises FileNotFoundError, SandboxError, or McpError if the
    program must not run outside the sandbox.
    """
    environment = {**around.environment, **settings.env}
    words = (settings.command or "", *settings.args)
    sandbox = None
    if around.sandbox is not None and settings.sandboxed:
        sandbox = around.sandbox(spec.cwd)
    if sandbox is not None:
        refusal = await asyncio.to_thread(sandbox.refusal)
        if refusal:
            raise SandboxError(refusal)
    if sandbox is None or not sandbox.active:
        problem = await asyncio.to_thread(around.problem_of, spec.cwd, command_line(settings))
        if problem:
            raise McpError(problem)
        found = _program_path(words[0], environment, outside=spec.cwd)
        yield _parameters((found, *words[1:]), spec, environment)
        return
    # A program inside the project is allowed only because the server runs in the sandbox.
    named = (_program_path(words[0], environment), *words[1:])
    launch = await sandbox.launch(
        words,
        spec.directory,
        spec.cwd,
        View(grants=Grants(read=spec.reads)),
        environment,
        live=True,
        inherits=False,
        allow_host=handler.allow_host,
    )
    hides = sandbox

    def sees(path: Path) -> bool:
        is_granted = any(path.is_relative_to(granted) for granted in spec.reads)
        return is_granted or hides.shows(path, project=spec.cwd)

    handler.listener.limited(SandboxLimits(spec.cwd, named, sees, launch.gateway.refused))
    try:
        yield _parameters(launch.arguments, spec, launch.environment)
    finally:
        outcome = await asyncio.shield(sandbox.finish(launch, "", None))
        if outcome.note:
            handler.log.line(outcome.note)
        await asyncio.shield(sandbox.aclose())


def _program_path(name: str, environment: Mapping[str, str], outside: Path | None = None) -> str:
    """Return the path of a program on ``PATH``. A name with a slash is returned unchanged.

    Ignores programs in the directory ``outside``. Raises FileNotFoundError if none is found.
    """
    if "/" in name:
        return name
    found = find_program(name, outside, environment)
    if found is None:
        where = "" if outside is None else " outside the project"
        raise FileNotFoundError(errno.ENOENT, f"there is no such program{where}", name)
    return found


def _parameters(
    words: Sequence[str], spec: ServerSpec, environment: Mapping[str, str]
) -> "StdioServerParameters":
    from mcp import StdioServerParameters

    return StdioServerParameters(
        command=words[0],
        args=list(words[1:]),
        env=dict(environment),
        cwd=spec.directory,
        encoding_error_handler="replace",
    )


def _is_not_parse_failure(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("Failed to parse")


async def _reach(
    spec: ServerSpec,
    around: ConnectionContext,
    settings: McpServerSettings,
    handler: _MessageHandler,
    stack: AsyncExitStack,
) -> "Client":
    """Connect to a URL by streamable HTTP, or by SSE.

    SSE is used if the settings say so, or if the server refuses streamable HTTP.
    """
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    from tui_agent.agent.mcp.http import http_client
    from tui_agent.agent.mcp.oauth import login_for

    url = settings.url or ""
    refusals: list[int] = []

    async def on_response(response: Any) -> None:
        # The SDK's errors don't contain the HTTP status of a refused request.
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            refusals.append(response.status_code)
            handler.listener.refused(response.status_code)

    def make(headers: Any = None, timeout: Any = None, auth: Any = None) -> Any:
        return http_client(around.environ, on_response, headers=headers, timeout=timeout, auth=auth)

    login = None
    if not settings.is_authorized:
        login = login_for(spec.name, url, around.token_dir, handler.listener.login)
    headers = dict(settings.headers)
    if settings.type != "sse":
        try:
            async with AsyncExitStack() as attempt:
                http = await attempt.enter_async_context(make(headers, None, login))
                client = await attempt.enter_async_context(
                    _client(spec, handler, streamable_http_client(url, http_client=http))
                )
                stack.push_async_exit(attempt.pop_all())
                return client
        except Exception:
            if not refusals or refusals[-1] not in _NOT_STREAMABLE:
                raise
            log.info("MCP server %s: no streamable HTTP (%d), trying SSE", spec.name, refusals[-1])
    try:
        sse = sse_client(
            url, headers, httpx_client_factory=make, auth=login, sse_read_timeout=SSE_SECONDS
        )
        return await stack.enter_async_context(_client(spec, handler, sse, "legacy"))
    except Exception:
        if len(refusals) > 1:
            # Report why streamable HTTP was refused, not why SSE was.
            handler.listener.refused(refusals[0])
        raise


@asynccontextmanager
async def _repaired(
    transport: AbstractAsyncContextManager[Any], handler: _MessageHandler
) -> AsyncIterator[Any]:
    async with transport as (read, write):
        yield _RepairedStream(read, handler), write


class _RepairedStream:
    """Wraps the SDK's read stream, and repairs messages (``leniency``) before the SDK sees them.

    Reports the end of the stream, and lines that aren't messages, to the listener.
    """

    def __init__(self, stream: Any, handler: _MessageHandler) -> None:
        self._stream = stream
        self._handler = handler
        self._read: deque[SessionMessage] = deque()
        """Messages that were read but not yet returned, because one line contained several
        messages."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            message = await self._next_message()
        except BaseException:
            if self._handler.connected:
                self._handler.listener.lost()
            raise
        result = getattr(getattr(message, "message", None), "result", None)
        if isinstance(result, dict):
            self._handler.leave_out(repair_tool_list(result))
            repair_introduction(result)
            repair_page(result)
            repair_tool_result(result)
        return message

    async def _next_message(self) -> Any:
        from pydantic import ValidationError

        while not self._read:
            message = await self._stream.__anext__()
            if not isinstance(message, ValidationError):
                return message
            written = _rejected_input(message)
            self._read.extend(_messages(written))
            if not self._read:
                self._handler.noise(
                    written if isinstance(written, str) else json.dumps(written, default=str)
                )
        return self._read.popleft()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> Any:
        return await self._stream.__aexit__(*error)


def _rejected_input(error: "ValidationError") -> Any:
    """Return the message or line that the SDK rejected, or the part of it that the error contains."""
    parts = [one["input"] for one in error.errors(include_url=False)]
    for part in parts:
        if isinstance(part, list) or (isinstance(part, dict) and {"id", "method"} & part.keys()):
            return part
    return parts[0]


def _messages(written: object) -> "Iterator[SessionMessage]":
    """Yield the repaired messages from a line that the SDK rejected."""
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter
    from pydantic import ValidationError

    for values in repair_line(written):
        with suppress(ValidationError, RecursionError):
            yield SessionMessage(jsonrpc_message_adapter.validate_python(values, by_name=False))


async def _subscribe(client: "Client", changed: Callable[[], None]) -> None:
    from mcp import MCPError
    from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

    try:
        async with client.listen(
            tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
        ) as events:
            async for _event in events:
                changed()
    except ListenNotSupportedError:
        return
    except (MCPError, SubscriptionLost, TimeoutError, RuntimeError) as error:
        log.info("no longer notified of changes to an MCP server's lists: %s", error)


class Connection:
    """Sends requests to a connected server. A request that fails raises McpError.

    Reports a lost connection to ``Listener.lost``.
    """

    def __init__(self, spec: ServerSpec, client: "Client", handler: _MessageHandler) -> None:
        self._spec = spec
        self._client = client
        self._handler = handler

    async def offer(self) -> ServerOffer:
        """Request and return everything that the server offers: tools, prompts, resources, templates."""
        client = self._client
        name = self._spec.name
        self._handler.problems.clear()
        able = client.server_capabilities
        tools: list[ToolInfo] = []
        prompts: list[McpPrompt] = []
        resources: list[McpResource] = []
        if able.tools:
            async for row in self._all(client.list_tools, "tools"):
                tools.append(_tool_info(row))
        if able.prompts:
            async for row in self._all(client.list_prompts, "prompts"):
                prompts.append(_prompt(name, row))
        if able.resources:
            async for row in self._all(client.list_resources, "resources"):
                found = _resource(name, row, row.uri)
                resources.append(replace(found, mime=row.mime_type, size=row.size))
        templates = await self._templates() if able.resources else []
        if not (able.tools or able.prompts or able.resources):
            self._handler.leave_out(["The server offers no tools, prompts or resources."])
        return ServerOffer(
            (client.instructions or "").strip(),
            tuple(tools),
            tuple(prompts),
            resources=tuple(resources),
            templates=tuple(templates),
            problems=tuple(self._handler.problems),
        )

    async def _templates(self) -> list[McpResource]:
        name = self._spec.name
        found: list[McpResource] = []
        try:
            async for row in self._all(self._client.list_resource_templates, "resource_templates"):
                found.append(_resource(name, row, row.uri_template))
        except McpError as error:  # a server with resources might not support templates
            log.info("MCP server %s returned no resource templates: %s", name, error)
        return found

    async def set_log_level(self, level: LogLevel) -> None:
        """Ask the server for log messages of at least ``level``, if it can send log messages."""
        if self._client.server_capabilities.logging:
            from mcp.shared.exceptions import MCPDeprecationWarning

            warnings.simplefilter("ignore", MCPDeprecationWarning)
            with suppress(McpError):  # in the newest protocol, each request contains the level
                await self._request(self._client.set_logging_level(level))

    async def call(
        self, name: str, arguments: dict[str, Any], reader: Reader, report: Callable[[str], None]
    ) -> Content:
        """Call a tool and return its result.

        ``report`` is called with a line for each progress message, ``reader`` converts the result.
        """

        async def report_progress(
            progress: float, total: float | None, message: str | None
        ) -> None:
            counted = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
            report(f"{message or counted}\n")

        result = await self._request(
            self._client.call_tool(name, arguments, progress_callback=report_progress)
        )
        return await asyncio.to_thread(reader.call_result, result)

    async def prompt(self, name: str, arguments: Mapping[str, str], reader: Reader) -> Content:
        result = await self._request(self._client.get_prompt(name, dict(arguments)))
        return await asyncio.to_thread(reader.prompt, result.messages)

    async def read(self, uri: str, reader: Reader) -> Content:
        result = await self._request(self._client.read_resource(uri))
        return await asyncio.to_thread(reader.resource, result)

    async def _request(self, request: "Awaitable[Any]") -> Any:
        from mcp import MCPError
        from pydantic import ValidationError

        limit = self._spec.settings.timeout
        try:
            async with self._handler.time_limit(limit):
                return await request
        except TimeoutError:
            raise McpError(f"{self._spec.name} did not answer within {limit:g} s.") from None
        except ValidationError:
            raise McpError(
                f"The answer of {self._spec.name} does not follow the protocol."
            ) from None
        except MCPError as error:
            if error.message in _LOST:
                self._handler.listener.lost()
                raise McpError(
                    f"The connection to {self._spec.name} was lost. It is being restored; try again."
                ) from None
            if "timed out" in error.message.lower():
                raise McpError(f"{self._spec.name} did not answer within {limit:g} s.") from None
            raise McpError(error.message) from None
        except RuntimeError as error:
            raise McpError(f"{self._spec.name}: {error}") from None

    async def _all(self, ask: Callable[..., Awaitable[Any]], rows: str) -> AsyncIterator[Any]:
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._request(ask(cursor=cursor))
            for row in getattr(page, rows):
                yield row
            cursor = page.next_cursor
            if cursor is None:
                return


def _tool_info(tool: "Tool") -> ToolInfo:
    whole = (tool.description or tool.title or "").strip()
    schema = tidy_schema(tool.input_schema)
    return ToolInfo(
        tool.name,
        shortened(whole, MAX_DESCRIPTION),
        # Every provider accepts an object schema with “properties”.
        {"type": "object", "properties": {}, **as_dict(schema)},
        bool(tool.annotations and tool.annotations.read_only_hint),
        omitted=max(0, len(whole) - MAX_DESCRIPTION),
    )


def _prompt(server: str, prompt: "Prompt") -> McpPrompt:
    arguments: list[PromptArgument] = []
    for row in prompt.arguments or ():
        arguments.append(PromptArgument(row.name, row.description or "", bool(row.required)))
    about = prompt.description or prompt.title or ""
    return McpPrompt(server, prompt.name, about, tuple(arguments))


def _resource(server: str, row: "Resource | ResourceTemplate", uri: str) -> McpResource:
    return McpResource(server, uri, row.name, row.description or row.title or "")

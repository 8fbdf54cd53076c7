"""One live connection to a server, from the SDK's types to ours. The SDK is imported here and only when needed."""

import asyncio
import importlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tui_agent import __version__
from tui_agent.agent.mcp.content import Reader
from tui_agent.agent.mcp.names import portable_name, tidy_schema
from tui_agent.agent.mcp.records import Content, McpError, McpPrompt, McpResource, PromptArgument, ServerOffer, ToolInfo
from tui_agent.agent.mcp.settings import ServerSpec, expanded

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import IncomingMessage, Transport

log = logging.getLogger(__name__)

MAX_DESCRIPTION = 1_000
"""Characters of a tool's description that the model is told on every request."""
MAX_PAGES = 50
"""Pages of a list that are asked for; a server that never ends its list must not hang the program."""
_LOST = frozenset({"Session terminated", "Connection closed"})

ShowLogin = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ConnectionContext:
    """Where servers live.

    ``environ`` fills in ``${NAME}`` in their settings; ``environment`` is what their processes get, secrets taken
    out. Logs of their error output and their login tokens are kept in the two directories.
    """

    environ: Mapping[str, str]
    environment: Mapping[str, str]
    log_dir: Path
    token_dir: Path

    def log_path(self, server: str) -> Path:
        """Return the file for a server's error output."""
        return self.log_dir / f"mcp-{portable_name('', server).strip('_')}.log"


@dataclass(frozen=True, slots=True)
class Listener:
    """Who hears of a connection: ``lost`` when it ended by itself, ``changed`` when what it offers is different now.

    ``login`` is given the address at which the user is to log in, ``refused`` the HTTP status of an answer that is one.
    """

    lost: Callable[[], None]
    changed: Callable[[], None]
    login: ShowLogin
    refused: Callable[[int], None]


async def load_sdk() -> None:
    """Import the SDK in a thread: it takes half a second."""
    await asyncio.to_thread(importlib.import_module, "mcp")


@asynccontextmanager
async def connect(spec: ServerSpec, around: ConnectionContext, listener: Listener) -> AsyncIterator["Connection"]:
    """Start or reach a server and shake hands.

    Raises:
        McpConfigError: its settings cannot be filled in.
        Exception: whatever keeps it from answering; the SDK's errors come in groups.
    """
    from mcp import Client
    from mcp.types import Implementation

    async def on_message(message: "IncomingMessage") -> None:
        if type(message).__name__.endswith("ListChangedNotification"):
            listener.changed()

    async with AsyncExitStack() as stack:
        transport = await _transport(spec, around, listener, stack)
        client = await stack.enter_async_context(
            Client(
                _watched(transport, listener.lost),
                message_handler=on_message,
                client_info=Implementation(name="tui-agent", version=__version__),
                cache=None,
            )
        )
        subscription = asyncio.create_task(_subscribe(client, listener.changed))
        try:
            yield Connection(spec, client, listener.lost)
        finally:
            subscription.cancel()
            await asyncio.wait([subscription])


async def _transport(
    spec: ServerSpec, around: ConnectionContext, listener: Listener, stack: AsyncExitStack
) -> "Transport | AbstractAsyncContextManager[Any]":
    settings = expanded(spec.settings, around.environ)
    if settings.command is not None:
        from mcp import StdioServerParameters, stdio_client

        path = around.log_path(spec.name)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        errors = stack.enter_context(
            os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8")
        )
        parameters = StdioServerParameters(
            command=settings.command,
            args=list(settings.args),
            env={**around.environment, **settings.env},
            cwd=spec.cwd,
            encoding_error_handler="replace",
        )
        return stdio_client(parameters, errlog=errors)

    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    from tui_agent.agent.mcp.oauth import login_for

    url = settings.url or ""
    login = None if settings.is_authorized else login_for(spec.name, url, around.token_dir, listener.login)
    http = await stack.enter_async_context(create_mcp_http_client(headers=dict(settings.headers), auth=login))
    http.event_hooks["response"].append(_telling(listener.refused))
    return streamable_http_client(url, http_client=http)


def _telling(refused: Callable[[int], None]) -> Callable[[Any], Awaitable[None]]:
    """Return what tells of answers that refuse: the SDK's errors do not say with which status."""

    async def on_response(response: Any) -> None:
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            refused(response.status_code)

    return on_response


@asynccontextmanager
async def _watched(transport: AbstractAsyncContextManager[Any], ended: Callable[[], None]) -> AsyncIterator[Any]:
    """Tell when nothing more can be read: the SDK says so only to whoever waits for an answer."""
    async with transport as (read, write):
        yield _WatchedStream(read, ended), write


class _WatchedStream:
    """A read stream that tells when it ends."""

    def __init__(self, stream: Any, ended: Callable[[], None]) -> None:
        self._stream = stream
        self._ended = ended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except BaseException:
            self._ended()
            raise

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> Any:
        return await self._stream.__aexit__(*error)


async def _subscribe(client: "Client", changed: Callable[[], None]) -> None:
    """Listen for changes of the lists where the protocol wants that asked for."""
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
        log.info("an MCP server tells of no changes: %s", error)


class Connection:
    """A server that answers. Errors of the SDK become ``McpError``; a lost connection is reported to ``lost``."""

    def __init__(self, spec: ServerSpec, client: "Client", lost: Callable[[], None]) -> None:
        self._spec = spec
        self._client = client
        self._lost = lost

    async def offer(self) -> ServerOffer:
        """Ask for everything the server offers."""
        able = self._client.server_capabilities
        return ServerOffer(
            tools=tuple([tool async for tool in self._tools()]) if able.tools else (),
            prompts=tuple([prompt async for prompt in self._prompts()]) if able.prompts else (),
            resources=tuple([resource async for resource in self._resources()]) if able.resources else (),
        )

    async def call(
        self, name: str, arguments: dict[str, Any], reader: Reader, report: Callable[[str], None]
    ) -> Content:
        """Call a tool. Cancelling tells the server.

        Raises:
            McpError: the server refused, is gone, or took too long.
        """

        async def report_progress(progress: float, total: float | None, message: str | None) -> None:
            counted = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
            report(f"{message or counted}\n")

        result = await self._asked(
            self._client.call_tool(
                name, arguments, read_timeout_seconds=self._spec.settings.timeout, progress_callback=report_progress
            )
        )
        return reader.call_result(result)

    async def prompt(self, name: str, arguments: Mapping[str, str], reader: Reader) -> Content:
        """Return a prompt filled in.

        Raises:
            McpError: as for ``call``.
        """
        result = await self._asked(self._client.get_prompt(name, dict(arguments)))
        return reader.prompt(result.messages)

    async def read(self, uri: str, reader: Reader) -> Content:
        """Return what a resource holds.

        Raises:
            McpError: as for ``call``.
        """
        return reader.resource(await self._asked(self._client.read_resource(uri)))

    async def _asked(self, request: "Awaitable[Any]") -> Any:
        from mcp import MCPError
        from pydantic import ValidationError

        limit = self._spec.settings.timeout
        try:
            async with asyncio.timeout(limit + 1):
                return await request
        except TimeoutError:
            raise McpError(f"{self._spec.name} did not answer within {limit:g} s.") from None
        except ValidationError:
            raise McpError(f"{self._spec.name} answered with what the protocol does not know.") from None
        except MCPError as error:
            if error.message in _LOST:
                self._lost()
                raise McpError(
                    f"The connection to {self._spec.name} was lost. It is being restored; try again."
                ) from None
            if "timed out" in error.message.lower():
                raise McpError(f"{self._spec.name} did not answer within {limit:g} s.") from None
            raise McpError(error.message) from None
        except RuntimeError as error:
            raise McpError(f"{self._spec.name}: {error}") from None

    async def _tools(self) -> AsyncIterator[ToolInfo]:
        async for page in self._pages(self._client.list_tools):
            for tool in page.tools:
                yield ToolInfo(
                    tool.name,
                    (tool.description or tool.title or "").strip()[:MAX_DESCRIPTION],
                    _object_schema(tool.input_schema),
                    bool(tool.annotations and tool.annotations.read_only_hint),
                )

    async def _prompts(self) -> AsyncIterator[McpPrompt]:
        async for page in self._pages(self._client.list_prompts):
            for prompt in page.prompts:
                arguments = tuple(
                    PromptArgument(row.name, row.description or "", bool(row.required))
                    for row in prompt.arguments or ()
                )
                about = prompt.description or prompt.title or ""
                yield McpPrompt(self._spec.name, prompt.name, about, arguments)

    async def _resources(self) -> AsyncIterator[McpResource]:
        async for page in self._pages(self._client.list_resources):
            for row in page.resources:
                about = row.description or row.title or ""
                yield McpResource(self._spec.name, row.uri, row.name, about, row.mime_type, row.size)

    async def _pages(self, ask: Callable[..., Awaitable[Any]]) -> AsyncIterator[Any]:
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._asked(ask(cursor=cursor))
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return


def _object_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's arguments as every provider takes it: an object with properties."""
    tidy = tidy_schema(schema)
    return {"type": "object", "properties": {}, **(tidy if isinstance(tidy, dict) else {})}

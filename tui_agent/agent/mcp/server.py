"""Runs one MCP server: starts it, watches it, and restarts it a limited number of times.

Also explains failures to the user. ``hub`` shows the explanations, and decides when servers start
and stop; ``connection`` is the connection itself.
"""

import asyncio
import importlib
import logging
import re
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple, get_args

from pydantic import ValidationError

from tui_agent.agent.mcp.connection import DROPPED, Connection, Listener, connect
from tui_agent.agent.mcp.oauth import LOGIN_SECONDS
from tui_agent.agent.mcp.records import (
    LogLevel,
    McpError,
    Remedy,
    ServerMessage,
    ServerOffer,
    ServerState,
)
from tui_agent.agent.mcp.sandbox_limits import SandboxLimits
from tui_agent.agent.mcp.settings import ConnectionContext, McpConfigError, ServerSpec, Timeouts
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.path_checks import is_directory
from tui_agent.safe_text import one_line
from tui_agent.tools.questions import Asker

log = logging.getLogger(__name__)

_UNAUTHORIZED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_LOG_TAIL = 4_000
"""Number of bytes at the end of a server's log that are searched for the cause of a failure."""
_TRACE_LINE = LazyPattern(
    r"\s|\W*$|Node\.js v\d|node:|file://|at |- |Require stack:|note: |npm (?:error|ERR!) A complete log"
)
"""Matches indented lines, brackets, versions and source positions, which Node, npm, Python and Rust
print around an error."""
_OWN_LINE = LazyPattern(
    rf"\[(?:{'|'.join(get_args(LogLevel))}|standard output)\] |{re.escape(DROPPED.rstrip())}"
)
"""Matches the lines of a server's log that this program wrote: log messages and notes."""
_WITHOUT_IT = "Work continues without its tools until it answers"

MESSAGES_KEPT = 50
"""Number of a server's newest messages that are kept to be shown on screens."""


class Trouble(NamedTuple):
    """Why a server is not available, and how the user can fix it.

    ``reason`` is a clause without full stop, ``advice`` a sentence, or "" for none. ``remedy`` is
    the action that the screen offers.
    """

    reason: str
    advice: str = ""
    remedy: Remedy = "restart"


@frozen
class Circumstances:
    """Facts about the end of a connection, in addition to its error.

    ``late`` is the timeout in seconds if it expired, otherwise None. ``status`` is the HTTP status
    of the last failed request, None if none failed. ``error_line`` is the line of the server's
    standard error that explains the end, ``noise`` the first line of its standard output that isn't
    an MCP message.
    """

    late: float | None = None
    status: int | None = None
    error_line: str = ""
    noise: str = ""
    sandbox_reason: str = ""
    """Clause that names the path or host that the sandbox denied to the server; "" if none."""
    hidden: tuple[Path, ...] = ()
    """The paths that ``sandbox_reason`` names."""


def trouble_of(error: BaseException | None, spec: ServerSpec, around: Circumstances) -> Trouble:
    """Return why a connection failed or ended, and how the user can fix it.

    ``error`` is None if the connection ended without an error.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, McpConfigError):
        return Trouble(
            str(error),
            "Set it in the environment before you start tui-agent, or add a default: ${NAME:-VALUE}.",
            "reload",
        )
    if spec.transport == "http":
        return _http_trouble(error, spec, around)
    return _stdio_trouble(error, spec, around)


def _stdio_trouble(error: BaseException | None, spec: ServerSpec, around: Circumstances) -> Trouble:
    match error:
        case FileNotFoundError() | NotADirectoryError() if not is_directory(spec.directory):
            return Trouble(
                f"there is no directory “{spec.directory}”",
                f"Create the directory, or correct the server's cwd in {spec.place}.",
                "reload",
            )
        case FileNotFoundError() if error.filename:
            return Trouble(
                f"there is no program “{error.filename}”",
                f"Install the program, or correct the server's command in {spec.place}.",
                "reload",
            )
        case PermissionError() if _is_program(error.filename, spec):
            return Trouble(
                f"“{spec.settings.command}” can't be executed",
                f"Correct the server's command in {spec.place}.",
                "reload",
            )
    if around.sandbox_reason:
        return Trouble(around.sandbox_reason, remedy="allow" if around.hidden else "reload")
    if around.noise and (around.late is not None or error is None):
        reason = f"it writes text to standard output that is not an MCP message (“{around.noise}”)"
        return Trouble(
            reason,
            f"Check that the command in {spec.place} starts an MCP server that logs to standard error.",
        )
    if around.late is not None:
        reason = f"it did not answer within {around.late:g} s"
        advice = f"Check that the command in {spec.place} starts an MCP server on standard output."
    else:
        reason = _text(error)
        advice = "See the server's log."
    said = around.error_line
    return Trouble(f"{reason} ({said})" if said and said not in reason else reason, advice)


def _is_program(name: str | None, spec: ServerSpec) -> bool:
    """Return True if ``name``, the file that an error names, is the server's program or None."""
    return name is None or Path(name).name == Path(spec.settings.command or "").name


def _http_trouble(error: BaseException | None, spec: ServerSpec, around: Circumstances) -> Trouble:
    if isinstance(error, McpError):
        return Trouble(_text(error), remedy="login")
    if around.late is not None:
        return Trouble(
            f"it did not answer within {around.late:g} s",
            f"Check the server's url in {spec.place}.",
        )
    if around.status is not None:
        return _refusal_trouble(around.status, spec)
    if type(error).__name__ == "ConnectError":  # an error of httpx, whose import takes too long
        reason = f"nothing answers at {spec.settings.url}"
        return Trouble(reason, f"Start the server, or correct its url in {spec.place}.", "reload")
    return Trouble(_text(error))


def _refusal_trouble(status: int, spec: ServerSpec) -> Trouble:
    try:
        answer = f"{status:d} {HTTPStatus(status).phrase}"
    except ValueError:
        answer = str(status)
    if status not in _UNAUTHORIZED:
        return Trouble(
            f"it answered {answer}",
            f"Check the server's url in {spec.place}, including the path.",
        )
    refused = f"it refused access ({answer})"
    if spec.settings.is_authorized:
        return Trouble(refused, f"Correct the server's headers in {spec.place}.", "reload")
    return Trouble(refused, remedy="login")


def _text(error: BaseException | None) -> str:
    match error:
        case None:
            return "it ended"
        case TimeoutError():
            return "it did not answer in time"
        case ValidationError():
            return "its answer does not follow the protocol"
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


class McpServer:
    """Runs one server in a task, and keeps the state that screens show.

    ``asker`` returns the function that asks the user, None if there is no user. ``on_change`` is
    called after each change, with this object and the new state (None if the state has not
    changed).
    """

    def __init__(
        self,
        spec: ServerSpec,
        around: ConnectionContext,
        patience: Timeouts,
        asker: Callable[[], Asker | None],
        on_change: "Callable[[McpServer, ServerState | None], None]",
    ) -> None:
        self.spec = spec
        self.name = spec.name
        self.offer = ServerOffer()
        """Everything that the server offers, including tools that the settings turn off."""
        self.state = ServerState.STOPPED if spec.settings.enabled else ServerState.DISABLED
        self.detail = ""
        self.advice = ""
        """Advice for the user on how to fix a failure; "" if there is none."""
        self.remedy: Remedy = "restart"
        self.hidden: tuple[Path, ...] = ()
        """Paths that the sandbox denied to the server when the server last failed."""
        self.restarts = 0
        self._around = around
        self._patience = patience
        self._listener = Listener(
            asker,
            self._lose,
            self._change,
            login=self._login,
            refused=self._refuse,
            said=self._keep_message,
            noise=self._keep_noise,
            limited=partial(setattr, self, "_sandbox_limits"),
        )
        self._on_change = on_change
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._lost = False
        self._changed = False
        self._is_idle = False
        """Whether the task is only waiting for `_wake`, so that `stop` need not cancel it."""
        self._settled = asyncio.Event()
        self._deadline: asyncio.Timeout | None = None
        self._refusal: int | None = None
        self._noise = ""
        self._sandbox_limits: SandboxLimits | None = None
        self.messages: deque[ServerMessage] = deque(maxlen=MESSAGES_KEPT)
        """The server's newest messages, oldest first."""

    @property
    def is_ready(self) -> bool:
        return self.state is ServerState.READY

    def start(self) -> None:
        if self.spec.settings.enabled and (self._task is None or self._task.done()):
            self._stopping.clear()
            self._settled.clear()
            self._set(ServerState.STARTING)
            self._task = asyncio.get_running_loop().create_task(
                self._supervise(), name=f"mcp {self.name}"
            )

    async def settled(self) -> None:
        """Wait until the server is ready or has failed.

        Waits at most as long as its setting ``start`` says; the server may still become ready after
        that. Returns immediately if the server was never started.
        """
        if self._task is not None:
            await self._settled.wait()

    async def stop(self) -> None:
        self._stopping.set()
        self._wake.set()
        if self._task is None:
            return
        if not self._is_idle:
            self._task.cancel()  # the server may never answer
        await asyncio.wait([self._task])
        self._set(ServerState.STOPPED)

    def connection(self) -> Connection:
        """Return the connection to the server. Raises McpError if the server is not available."""
        if self._connection is None:
            why = ""
            if self.detail:
                why = f": {self.detail}"
            raise McpError(
                f"The MCP server {self.name} is not available ({self.state.value}{why}). Continue without it."
            )
        return self._connection

    # -- supervision ----------------------------------------------------------------------------------------

    async def _supervise(self) -> None:
        pauses = list(self._patience.pauses)
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            was_ready, trouble = await self._connect_once()
            if self._stopping.is_set():
                return
            if loop.time() - began > self._patience.healthy:
                pauses = list(self._patience.pauses)
            if not pauses or (not was_ready and self.restarts == 0):
                self._set(ServerState.FAILED, *trouble)
                return
            self.restarts += 1
            self._set(ServerState.STARTING, f"{trouble.reason}; restarting")
            with suppress(TimeoutError):
                async with asyncio.timeout(pauses.pop(0)):
                    await self._stopping.wait()
                return

    async def _connect_once(self) -> tuple[bool, Trouble]:
        """Connect to the server, and wait until the connection ends or `stop` is called.

        Returns whether the server was ready, and why the connection ended.
        """
        self._lost = False
        self._changed = False
        self._is_idle = False
        self._deadline = None
        self._refusal = None
        self._noise = ""
        self.hidden = ()
        ready = False
        try:
            # In a thread, because the import takes half a second.
            await asyncio.to_thread(importlib.import_module, "mcp")
            async with AsyncExitStack() as stack:
                if self._patience.starts > 1:
                    late = asyncio.get_running_loop().call_later(
                        self.spec.settings.start, self._stop_waiting
                    )
                    stack.callback(late.cancel)
                async with asyncio.timeout(self._start_timeout) as self._deadline:
                    connection = await stack.enter_async_context(
                        connect(self.spec, self._around, self._listener)
                    )
                stack.callback(setattr, self, "_connection", None)
                self._connection = connection
                await self._take_offer(connection)
                ready = True
                while not self._is_over():
                    if self._changed:
                        self._changed = False
                        await self._take_offer(connection)
                    self._wake.clear()
                    if not (self._is_over() or self._changed):
                        self._is_idle = True
                        await self._wake.wait()
                        self._is_idle = False
        except Exception as error:  # a server may fail in any way, and no caller handles errors
            log.info("MCP server %s: %s", self.name, error, exc_info=error)
            return ready, self._why(error)
        return ready, self._why(None)

    @property
    def _start_timeout(self) -> float:
        """Seconds after which the start of the server counts as failed."""
        return self.spec.settings.start * self._patience.starts

    def _is_over(self) -> bool:
        return self._lost or self._stopping.is_set()

    async def _take_offer(self, connection: Connection) -> None:
        limit = self._start_timeout
        if self.state is ServerState.LOGIN:
            limit += LOGIN_SECONDS
        async with asyncio.timeout(limit):
            self.offer = await connection.offer()
        self._refusal = None
        self._set(ServerState.READY)

    # -- from its connection --------------------------------------------------------------------------------

    def _lose(self) -> None:
        self._lost = True
        self._wake.set()

    def _change(self) -> None:
        self._changed = True
        self._wake.set()

    def _refuse(self, status: int) -> None:
        if not self.is_ready:
            self._refusal = status

    def _keep_message(self, message: ServerMessage) -> None:
        self.messages.append(message)
        self._on_change(self, None)

    def _keep_noise(self, text: str) -> None:
        """Keep the first line of standard output that isn't an MCP message, and show it to the user."""
        if not self._noise:
            self._noise = one_line(text, 120) or "empty lines"
            self.messages.append(
                ServerMessage("warning", f"not an MCP message on standard output: {self._noise}")
            )
            self._on_change(self, None)

    async def _login(self, url: str) -> None:
        if self._deadline is not None:
            # From now on, the time limit for the login in the browser applies instead.
            with suppress(RuntimeError):
                self._deadline.reschedule(asyncio.get_running_loop().time() + LOGIN_SECONDS)
        self._set(ServerState.LOGIN, url)
        if self._connection is not None:
            # The offer is read again, which waits for the login and then makes the server ready.
            self._change()

    def _set(
        self, state: ServerState, detail: str = "", advice: str = "", remedy: Remedy = "restart"
    ) -> None:
        self.state = state
        self.detail = detail
        self.advice = advice
        self.remedy = remedy
        if state not in {ServerState.STARTING, ServerState.LOGIN}:
            self._settled.set()
        self._on_change(self, state)

    def _stop_waiting(self) -> None:
        """End the wait in `settled`. The server may still become ready later."""
        if not self._settled.is_set():
            self._settled.set()
            if self.state is ServerState.STARTING:
                self._set(
                    self.state, f"no answer for {self.spec.settings.start:g} s. {_WITHOUT_IT}"
                )

    def _why(self, error: Exception | None) -> Trouble:
        """Return why the connection ended, judging by the error and the server's last output."""
        text = ""
        if self.spec.transport == "stdio":
            with suppress(OSError):
                data = self._around.log_path(self.name).read_bytes()
                text = data[-_LOG_TAIL:].decode("utf-8", "replace")
        late = None
        if self._deadline is not None and self._deadline.expired():
            late = self._start_timeout
        reason = ""
        if self._sandbox_limits is not None:
            reason = self._sandbox_limits.explanation(text)
            self.hidden = self._sandbox_limits.hidden(text)
        around = Circumstances(
            late,
            self._refusal,
            error_line(text),
            noise=self._noise,
            sandbox_reason=reason,
            hidden=self.hidden,
        )
        return trouble_of(error, self.spec, around)


def error_line(text: str) -> str:
    """Return the line of a server's log that explains why the server ended; "" if there is none.

    This is the last line of the server's standard error that isn't part of a trace. A line that
    begins with a bracket, as in many servers' logs, is used only if there is no other. If all lines
    are part of a trace, the last line is returned.
    """
    lines = [line for line in text.splitlines() if line.strip() and not _OWN_LINE.match(line)]
    words = [line for line in lines if not _TRACE_LINE.match(line)]
    sentences = [line for line in words if not line.startswith("[")]
    for line in reversed(sentences or words or lines):
        return line.strip()[:200]
    return ""

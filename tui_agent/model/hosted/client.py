"""Sends requests to the model host, the process that runs litellm, and restarts it if needed.

This module builds litellm's arguments, and decides when the host counts as hung and is killed.
``link`` manages the process and its pipes.
"""

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tui_agent.context.request import Message, ModelRequest, wire_tool
from tui_agent.model.errors import Failure
from tui_agent.model.hosted import lines
from tui_agent.model.hosted.lines import Event
from tui_agent.model.hosted.link import (
    HostGoneError,
    Inbox,
    Link,
    install_command,
    is_installed,
    last_words,
    start,
)
from tui_agent.model.protocol import ErrorKind, ModelError, ModelEvent
from tui_agent.model.route import Route
from tui_agent.model.settings import HostSettings
from tui_agent.model.wires import chat
from tui_agent.model.wires.wire import Reader, WireFailure, blobs, one_system_message
from tui_agent.session.effort import Effort

_MARK = {"type": "ephemeral"}
_MARKS_ON_CALLS = {"anthropic", "vertex_ai", "azure_ai"}
"""Providers that accept a cache mark on a tool call. Other providers accept cache marks only on
text."""

log = logging.getLogger(__name__)


def build_call(
    request: ModelRequest, route: Route, *, with_reasoning: bool = True
) -> dict[str, Any]:
    """Return the arguments of ``litellm.acompletion`` for a request, including the key.

    Without ``with_reasoning``, the reasoning of earlier answers is left out.
    """
    call = dict(route.parameters)
    if route.key is not None:
        call["api_key"] = route.key.get_secret_value()
    if route.info.cache_marks:
        messages = request.messages
    else:
        messages = one_system_message(request.messages)
    call["messages"] = [
        _message(message, request, route, with_reasoning=with_reasoning) for message in messages
    ]
    if request.tools:
        call["tools"] = [wire_tool(tool) for tool in request.tools]
        if request.tool_choice != "auto":
            call["tool_choice"] = request.tool_choice
    if request.answer_tokens is not None:
        call["max_tokens"] = request.answer_tokens
    if request.effort is not None:
        call.setdefault(
            "reasoning_effort", "none" if request.effort is Effort.OFF else str(request.effort)
        )
    return call


def _message(
    message: Message, request: ModelRequest, route: Route, *, with_reasoning: bool
) -> dict[str, Any]:
    """Return a chat completions message with cache mark and reasoning in litellm's fields."""
    wire = chat.chat_message(replace(message, cache=False), request, route)
    if message.cache and route.info.cache_marks:
        if message.role == "tool":
            # litellm turns a tool's result into one block, so the mark is put on the message.
            wire["cache_control"] = _MARK
        elif message.tool_calls and route.provider.id in _MARKS_ON_CALLS:
            wire["tool_calls"][-1]["cache_control"] = _MARK
        elif message.content:
            wire["content"][-1]["cache_control"] = _MARK
    for blob in blobs(message) if with_reasoning else ():
        for name in ("thinking_blocks", "reasoning_details"):
            if isinstance(blob.get(name), list):
                wire.setdefault(name, []).extend(blob[name])
        if isinstance(own := blob.get("provider_specific_fields"), dict):
            wire["provider_specific_fields"] = own
        text = blob.get("reasoning_content")
        if isinstance(text, str) and route.provider.chat.reasoning_back == "reasoning_content":
            wire["reasoning_content"] = wire.get("reasoning_content", "") + text
    return wire


class HostClient:
    """Answers requests through litellm in another process, the model host.

    The process is started by ``warm`` or the first request. If it has ended or hung, the next
    request starts it again. ``environ`` are the program's environment variables; the process
    receives only those that it needs. ``log_path`` is the file for the output of the process; None
    discards the output.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        settings: HostSettings | None = None,
        log_path: Path | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._environ = environ
        self.settings = settings or HostSettings()
        self._log_path = log_path
        self._now = now
        self._numbers = itertools.count(1)
        self._link: Link | None = None
        self._starting: asyncio.Task[Link] | None = None
        self._closed = False

    # -- requests ---------------------------------------------------------------------------------------------

    async def answer(
        self, call: dict[str, Any], reader: Reader
    ) -> AsyncGenerator[ModelEvent, None]:
        """Call litellm in the model host; yield the events that ``reader`` makes from the chunks.

        ``call`` are the arguments of ``litellm.acompletion``. Closing the iterator early cancels
        the request.

        Raises:
            ModelError: the process failed or can't be started.
            WireFailure: the request failed, before or in the middle of the answer.
        """
        link, number, inbox = await self._submit(call)
        last = lines.ACCEPTED
        try:
            while last not in lines.LAST:
                # The host waits first for the answer's headers and then for its first piece, each
                # for at most this time.
                limits = self.settings
                begins = last == lines.ACCEPTED
                if begins:
                    seconds = 2 * limits.first_byte_timeout
                else:
                    seconds = limits.stall_timeout
                event = await self._next(link, inbox, seconds)
                last = event[0]
                if last == lines.FAILED:
                    raise WireFailure(Failure(**event[1]))
                if last == lines.CHUNK:
                    for heard in reader.feed("", event[1]):
                        yield heard
            for heard in reader.end():
                yield heard
        finally:
            link.close(number, cancel=last not in lines.LAST)

    async def _submit(self, call: dict[str, Any]) -> tuple[Link, int, Inbox]:
        """Send a request to the host. Return the link, the request's number and its inbox.

        If the host has ended or hung, it is replaced once. That is safe, because nothing has been
        sent to the provider yet.
        """
        link = await self._connected()
        try:
            return await self._hand_over(link, call)
        except ModelError as error:
            if error.kind is not ErrorKind.HOST or self._closed:
                raise
        return await self._hand_over(await self._connected(), call)

    async def _hand_over(self, link: Link, call: dict[str, Any]) -> tuple[Link, int, Inbox]:
        number = next(self._numbers)
        inbox = link.open(number)
        link.send(
            {
                "op": "stream",
                "id": number,
                "call": call,
                "limits": {
                    "connect": self.settings.connect_timeout,
                    "first_byte": self.settings.first_byte_timeout,
                    "stall": self.settings.stall_timeout,
                },
            }
        )
        try:
            await self._next(link, inbox, 0)
        except BaseException:
            link.close(number, cancel=True)
            raise
        return link, number, inbox

    async def _next(self, link: Link, inbox: Inbox, seconds: float) -> Event:
        """Wait for the next event of a request, and return it.

        ``seconds`` is the time that the host may wait for the provider. If the host stays silent
        for ``answer_timeout`` seconds longer, it is killed.

        Raises:
            ModelError: the host ended or was killed.
        """
        try:
            async with asyncio.timeout(seconds + self.settings.answer_timeout):
                return await inbox.take()
        except HostGoneError as error:
            reason = str(error)
        except TimeoutError:
            log.warning("the model host does not respond and is killed")
            link.kill()
            reason = "it hung"
        raise ModelError(
            ErrorKind.HOST,
            f"The process that talks to providers ended ({reason}); it is being restarted.",
        )

    # -- the process ------------------------------------------------------------------------------------------

    def warm(self) -> None:
        """Start the host in the background, unless it is running or this client is closed."""
        if (
            not self._closed
            and self._starting is None
            and (self._link is None or not self._link.is_alive)
        ):
            self._starting = asyncio.create_task(self._start())
            # A failure is reported by the request that needs the host.
            self._starting.add_done_callback(lambda task: task.cancelled() or task.exception())

    @property
    def pid(self) -> int | None:
        if self._link is not None and self._link.is_alive:
            return self._link.pid
        return None

    async def aclose(self) -> None:
        self._closed = True
        if (starting := self._starting) is not None:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
        if self._link is not None:
            await self._link.aclose()

    async def _connected(self) -> Link:
        if self._link is not None and self._link.is_alive:
            return self._link
        self.warm()
        if self._starting is None:
            raise ModelError(ErrorKind.HOST, "The program is ending.")
        # Cancelling this request must not cancel the start that other requests are waiting for.
        return await asyncio.shield(self._starting)

    async def _start(self) -> Link:
        if not is_installed():
            self._starting = None
            reason = "This model's provider is reached through litellm, which is not installed"
            raise ModelError(ErrorKind.UNKNOWN, f"{reason}: run {install_command()}")
        try:
            link = await start(self._environ, self._log_path)
            try:
                async with asyncio.timeout(self.settings.start_timeout):
                    await link.host.take()
            except BaseException:
                link.kill()
                raise
        except (OSError, HostGoneError, TimeoutError) as error:
            seconds = f"not ready within {self.settings.start_timeout:.0f} s"
            if isinstance(error, TimeoutError):
                why = seconds
            else:
                why = str(error)
            words = last_words(self._log_path)
            where = ""
            if self._log_path is not None:
                where = f" See {self._log_path}."
            said = ""
            if words:
                said = f": {words}"
            message = f"The process that talks to providers can't start ({why}){said}.{where}"
            raise ModelError(ErrorKind.HOST, message) from None
        finally:
            self._starting = None
        self._link = link
        return link

"""Sends the wires' calls and reads the answers: connections, time limits, server-sent events.

Proxies and certificates are taken from the environment (HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE,
SSL_CERT_DIR, REQUESTS_CA_BUNDLE); servers on this machine are never reached through a proxy.
"""

import asyncio
import contextlib
import json
import logging
import ssl
import time
from codecs import BOM_UTF8
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import anyio._backends._asyncio  # noqa: F401 - httpcore loads it with its first connection, when a user waits
import certifi
import httpcore  # noqa: F401 - httpx loads it with its first client
import httpx

from tui_agent.model.error_body import PAGE
from tui_agent.model.error_facts import failure_facts, wait_headers
from tui_agent.model.errors import Cause, Failure
from tui_agent.model.plan_limits import read_plan
from tui_agent.model.protocol import (
    ModelEvent,
    PlanSeen,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from tui_agent.model.redaction import redact
from tui_agent.model.route import Route
from tui_agent.model.settings import HostSettings
from tui_agent.model.streamed_calls import is_object
from tui_agent.model.wires.wire import Call, Reader, WireFailure
from tui_agent.web.proxies import read_proxies

_ERROR_BODY = 64 << 10
"""Maximum number of bytes that are read from the body of an error response."""

FINISH_GRACE_SECONDS = 2.0
"""After the finish reason, this many seconds are allowed for the usage and the final event."""

_CLOSE_GRACE_SECONDS = 0.05
"""Seconds to wait after the final event for the end of the response, so that the connection can be
reused."""

_IDLE_SECONDS = 55.0
"""Number of seconds after which an idle connection is closed. Most servers close one after a
minute."""

_MAX_OBJECT_LINES = 100
"""An event's data is tested for being a complete JSON object only if it has at most this many
lines."""

_CERTIFICATES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


class EventDecoder:
    """Decodes ``text/event-stream`` (HTML standard, section 9.2); comments and ids are ignored.

    The decoder also understands servers that leave out the empty line between events.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._event = ""
        self._later = ""
        """The name of an event, if it was received after data. It belongs to the current event or
        to the next one."""
        self._data: list[str] = []
        self.heard = False
        """Whether any part of an event, except a comment, has been received since this was last set
        to False."""

    def feed(self, data: bytes) -> list[tuple[str, str]]:
        """Add bytes and return the events that are now complete, as (name or "", data)."""
        if b"\n" not in data and b"\r" not in data:
            self._rest += data
            self._note_part()
            return []
        if self._rest:
            data = bytes(self._rest) + data
        if b"\r" in data:
            # If the data ends with \r, this may be the first half of a line end \r\n.
            half = b"\r" if data.endswith(b"\r") else b""
            data = data.removesuffix(half).replace(b"\r\n", b"\n").replace(b"\r", b"\n") + half
        *lines, rest = data.split(b"\n")
        self._rest = bytearray(rest)
        self._note_part()
        return self._take(lines)

    def _note_part(self) -> None:
        self.heard = self.heard or bool(self._rest.strip() and not self._rest.startswith(b":"))

    def end(self) -> list[tuple[str, str]]:
        """Return the remaining events, as (name, data), when the stream ends.

        There is at most one, or two from a server that leaves out the empty line between events.
        """
        rest = bytes(self._rest).rstrip(b"\r")
        self._rest = bytearray()
        return self._take([rest, b""])

    def _take(self, lines: list[bytes]) -> list[tuple[str, str]]:
        events = []
        for line in lines:
            if line.startswith((b"data:", b"event:")):
                self.heard = True
            if line.startswith(b"data:"):
                piece = line[6 if line[5:6] == b" " else 5 :].decode("utf-8", "replace")
                if piece and self._is_whole():
                    # Some servers leave out the empty line between events.
                    events.append(self._taken(self._event))
                self._data.append(piece)
            elif line.startswith(b"event:"):
                name = line[6:].decode("utf-8", "replace").strip()
                if self._data:
                    self._later = name
                else:
                    self._event = name
            elif not line:
                if self._data:
                    events.append(self._taken(self._later or self._event))
                self._event = ""
                self._later = ""
        return events

    def _is_whole(self) -> bool:
        """Return True if the lines of data received so far are a complete JSON object."""
        lines = self._data
        if not lines or len(lines) > _MAX_OBJECT_LINES or not lines[-1].endswith("}"):
            return False
        return is_object("\n".join(lines))

    def _taken(self, name: str) -> tuple[str, str]:
        event = (name, "\n".join(self._data))
        self._data.clear()
        self._event = self._later
        self._later = ""
        return event


class DocumentDecoder:
    """Decodes JSON documents: one per line, as sent by Ollama, or one that spans several lines."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self.heard = False
        """Whether any part of a document has been received since this was last set to False."""

    def feed(self, data: bytes) -> list[tuple[str, str]]:
        """Add bytes and return the documents that are now complete, as ("", document).

        Only one-line documents are returned here; ``end`` returns one that spans several lines.
        """
        self._rest += data
        self.heard = True
        if b"\n" not in data:
            return []
        *lines, rest = bytes(self._rest).split(b"\n")
        # The first line of a document that spans several lines isn't an object on its own.
        if not all(
            line.startswith(b"{") and line.rstrip().endswith(b"}") for line in lines if line.strip()
        ):
            return []
        self._rest = bytearray(rest)
        return [("", line.decode("utf-8", "replace")) for line in lines if line.strip()]

    def end(self) -> list[tuple[str, str]]:
        rest = bytes(self._rest)
        self._rest = bytearray()
        if rest.strip():
            return [("", rest.decode("utf-8", "replace"))]
        return []


# httpx logs the URL of each request, which may contain a key.
logging.getLogger("httpx").setLevel(logging.WARNING)


class Http:
    """Connections to providers, with a pool for each proxy.

    ``environ`` contains the variables that set proxies and trusted certificates.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._clients: dict[tuple[str, str | None], httpx.AsyncClient] = {}
        self._making = asyncio.Lock()

    async def aclose(self) -> None:
        clients = list(self._clients.values())
        self._clients = {}
        for client in clients:
            await client.aclose()

    async def client(self, url: str) -> httpx.AsyncClient:
        """Return the httpx client for a URL's scheme and proxy; it is created on first use.

        For https, loading the certificates takes 30 ms. Raises WireFailure if the certificates that
        the environment names can't be read.
        """
        scheme = "https" if url.lower().startswith("https:") else "http"
        proxy = read_proxies(self._environ).of(url)
        way = (scheme, proxy)
        async with self._making:
            if way not in self._clients:
                trusted = (
                    await asyncio.to_thread(_trusted, self._environ) if scheme == "https" else False
                )
                self._clients[way] = httpx.AsyncClient(
                    verify=trusted,
                    proxy=proxy,
                    trust_env=False,
                    limits=httpx.Limits(
                        max_connections=None,
                        max_keepalive_connections=20,
                        keepalive_expiry=_IDLE_SECONDS,
                    ),
                    headers={"accept-encoding": "identity", "user-agent": "tui-agent"},
                )
            return self._clients[way]

    async def fetch(
        self, method: str, url: str, limit: int = _ERROR_BODY, **options: Any
    ) -> tuple[httpx.Response, bytes]:
        """Send a request, and return the response with its body. Redirects are not followed.

        Reading stops once the body has more than ``limit`` bytes, so a longer one is incomplete.
        ``options`` are passed to httpx.

        Raises:
            httpx.HTTPError: the request was not answered.
            httpx.InvalidURL: the URL can't be parsed.
            WireFailure: the certificates that the environment names can't be read.
        """
        client = await self.client(url)
        body = bytearray()
        async with client.stream(method, url, follow_redirects=False, **options) as response:
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > limit:
                    break
        return response, bytes(body)

    async def answer(
        self, call: Call, route: Route, reader: Reader, limits: HostSettings
    ) -> AsyncGenerator[list[ModelEvent], None]:
        """Post a call and yield the events of its answer, in lists, as they are received.

        Closing the iterator early closes the connection, which cancels the request.

        Raises:
            WireFailure: the request failed, before or in the middle of the answer.
        """
        secrets = []
        if route.key is not None:
            secrets = [route.key.get_secret_value()]
        try:
            client = await self.client(route.base_url)
            request = _post(client, call, route, limits)
            response = await _within(
                limits.first_byte_timeout, "timeout", client.send(request, stream=True)
            )
            try:
                if not response.is_success:
                    raise WireFailure(await _refusal(response, limits))
                plan = read_plan(response.headers, now=time.time())
                async with aclosing(_read(response, reader, limits)) as pieces:
                    async for events in pieces:
                        if plan and events:
                            yield [PlanSeen(plan), *events]
                            plan = ()
                        else:
                            yield events
            finally:
                await response.aclose()
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise WireFailure(Failure(**failure_facts(error, secrets))) from None
        except WireFailure as failed:
            text = redact(failed.failure.text, secrets)
            raise WireFailure(replace(failed.failure, text=text)) from None


def _post(
    client: httpx.AsyncClient, call: Call, route: Route, limits: HostSettings
) -> httpx.Request:
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream",
        **route.secret_headers(),
        **route.headers,
        **call.headers,
    }
    # _Patience enforces the time limits of reading, because the first piece may take longer.
    timeout = httpx.Timeout(None, connect=limits.connect_timeout, write=limits.first_byte_timeout)
    url = f"{route.base_url}{call.path}"
    if not all(value.isascii() and value.isprintable() for value in headers.values()):
        # httpx's own error would contain the key.
        raise WireFailure(Failure("the key or a header has characters that can't be sent"))
    return client.build_request(
        "POST",
        url,
        params=dict(route.query) or None,
        content=encode(call.body),
        headers=headers,
        timeout=timeout,
    )


class _Patience:
    """Waits for the next piece of an answer within a time limit.

    The limit is ``first_byte_timeout`` until the first event, then ``stall_timeout``, and
    ``FINISH_GRACE_SECONDS`` after the finish reason. Comments, which keep a connection open, don't
    extend it.
    """

    def __init__(self, limits: HostSettings) -> None:
        self._stall_timeout = limits.stall_timeout
        self._cause: Cause = "timeout"
        self._is_ending = False
        self._allow(limits.first_byte_timeout)

    def _allow(self, seconds: float) -> None:
        self._allowed = seconds
        self._left = seconds
        """Number of seconds that are left for waiting. Only the time spent waiting for the provider
        counts, not the time that the consumer of the events takes."""

    def note(self, reader: Reader, *, is_event: bool, with_more: bool) -> None:
        """Start a new time limit after a piece was fed to the reader.

        ``is_event`` says that the piece contained a part of an event, ``with_more`` that the reader
        returned model events for it.
        """
        if reader.finished and (with_more or not self._is_ending):
            self._is_ending = True
            self._allow(FINISH_GRACE_SECONDS)
        elif is_event and not self._is_ending:
            self._cause = "stalled"
            self._allow(self._stall_timeout)

    async def for_piece(self, body: AsyncIterator[bytes]) -> bytes:
        """Return the next piece of the answer, b"" at the end.

        Raises WireFailure after the time limit.
        """
        clock = asyncio.get_running_loop().time
        began = clock()
        data: bytes = await _within(
            self._left, self._cause, anext(body, b""), seconds=self._allowed
        )
        self._left -= clock() - began
        return data


async def _read(
    response: httpx.Response, reader: Reader, limits: HostSettings
) -> AsyncGenerator[list[ModelEvent], None]:
    """Feed the response's body to the reader and yield the events, in lists, as they arrive.

    The iterator ends when the answer is complete or the connection ends. Raises WireFailure or
    httpx.HTTPError for an error before the finish reason, and WireFailure if the reader's ``end``
    finds the answer unusable.
    """
    body = response.aiter_bytes()
    decoder: EventDecoder | DocumentDecoder | None = None
    patience = _Patience(limits)
    try:
        while not reader.done and (data := await patience.for_piece(body)):
            if decoder is None and not (data := data.removeprefix(BOM_UTF8).lstrip()):
                continue
            decoder = decoder or _decoder(data)
            events, failed = _fed(reader, decoder.feed(data))
            patience.note(reader, is_event=decoder.heard, with_more=bool(events))
            decoder.heard = False
            if events:
                yield merged(events)
            if failed is not None:
                raise failed
    except (httpx.HTTPError, WireFailure):
        # After the finish reason, a broken connection or a timeout doesn't matter.
        if not reader.finished:
            raise
    if decoder is not None and not reader.done:
        events, failed = _fed(reader, decoder.end())
        if events:
            yield events
        if failed is not None and not reader.finished:
            if failed.failure.cause == "broken":
                raise WireFailure(
                    Failure(cause="ended")
                )  # The last event is incomplete, so the rest of the answer is missing.
            raise failed
    yield reader.end()
    # If the end of the body is received at once, read up to it, so that the connection can be
    # reused.
    with contextlib.suppress(TimeoutError, httpx.HTTPError, httpx.StreamError):
        async with asyncio.timeout(_CLOSE_GRACE_SECONDS):
            async for _rest in body:
                pass


def _decoder(begin: bytes) -> EventDecoder | DocumentDecoder:
    """Return the decoder that fits a body, according to the body's first bytes.

    This is needed because some servers send no event stream. Raises WireFailure for a web page or
    XML.
    """
    if begin.startswith(b"<"):
        text = begin.decode("utf-8", "replace")
        if PAGE.match(text):
            raise WireFailure(Failure("it answers with a web page", status=httpx.codes.NOT_FOUND))
        raise WireFailure(Failure(text[:_ERROR_BODY]))
    if begin[:1] in {b"{", b"["}:
        return DocumentDecoder()
    return EventDecoder()


def _fed(
    reader: Reader, events: list[tuple[str, str]]
) -> tuple[list[ModelEvent], WireFailure | None]:
    """Feed (name, data) pairs to a reader; return its events and the failure that stopped it."""
    found: list[ModelEvent] = []
    for name, text in events:
        try:
            found += reader.feed(name, text)
        except WireFailure as failed:
            return found, failed
    return found, None


async def _refusal(response: httpx.Response, limits: HostSettings) -> Failure:
    if response.is_redirect:
        where = response.headers.get("location", "elsewhere")
        return Failure(
            f"it redirects to {where}: set base_url to that address", status=response.status_code
        )
    text = bytearray()
    body = response.aiter_bytes()
    try:
        while len(text) < _ERROR_BODY and (
            data := await _within(limits.stall_timeout, "stalled", anext(body, b""))
        ):
            text += data
    except (httpx.HTTPError, WireFailure):
        # The body can't be read, but the status says enough about the error.
        pass
    return Failure(
        text.decode("utf-8", "replace"), response.status_code, wait_headers(response.headers)
    )


async def _within(left: float, cause: Cause, waiting: Any, *, seconds: float | None = None) -> Any:
    """Wait for ``waiting`` and return its result. Raise WireFailure after ``left`` seconds.

    ``cause`` becomes the failure's cause. The time limit that it names is ``seconds``, or ``left``
    if ``seconds`` is None.
    """
    try:
        async with asyncio.timeout(left):
            return await waiting
    except TimeoutError:
        raise WireFailure(
            Failure(cause=cause, seconds=left if seconds is None else seconds)
        ) from None


def encode(body: Mapping[str, Any]) -> bytes:
    """Return a body as compact JSON in UTF-8.

    Lone surrogates become question marks; dates, which TOML settings may contain, become text.
    """
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=str).encode(
        "utf-8", "replace"
    )


def merged(events: list[ModelEvent]) -> list[ModelEvent]:
    """Return events with adjacent deltas of the same text, reasoning or call joined."""
    found: list[ModelEvent] = []
    for event in events:
        match (found[-1] if found else None), event:
            case TextDelta(before), TextDelta(more):
                found[-1] = TextDelta(before + more)
            case ReasoningDelta(before), ReasoningDelta(more):
                found[-1] = ReasoningDelta(before + more)
            case ToolCallDelta(index=call, arguments=before), ToolCallDelta() as piece if (
                piece.index == call
            ):
                found[-1] = replace(piece, arguments=before + piece.arguments)
            case _:
                found.append(event)
    return found


def _trusted(environ: Mapping[str, str]) -> ssl.SSLContext:
    """Return a TLS context with trusted certificates.

    They are those that the environment names, otherwise the system's or certifi's. Raises
    WireFailure if the certificates that the environment names can't be read.
    """
    named = next((environ[name] for name in _CERTIFICATES if environ.get(name)), None)
    try:
        context = ssl.create_default_context(
            cafile=named, capath=environ.get("SSL_CERT_DIR") or None
        )
    except OSError as error:
        raise WireFailure(Failure(f"the certificates in {named} can't be read ({error})")) from None
    if not context.cert_store_stats()["x509_ca"] and not environ.get("SSL_CERT_DIR"):
        context.load_verify_locations(certifi.where())
    return context

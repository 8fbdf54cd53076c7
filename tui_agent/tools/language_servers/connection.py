"""Connects to one language server, by starting its process and exchanging JSON-RPC messages.

Implements the base protocol of the Language Server Protocol 3.17. A server may come from an
untrusted project, so its messages are limited in size and number, and a server that breaks the
protocol is ended.
"""

import asyncio
import contextlib
import itertools
import json
import re
import socket
from collections.abc import Callable, Iterator
from typing import Any

from tui_agent.processes.capture import plain_text
from tui_agent.processes.process import Command, StartedCommand, start
from tui_agent.safe_text import one_line
from tui_agent.secret_detector import remove_secrets

MAX_MESSAGE_BYTES = 8_000_000
"""Maximum size of a message, in bytes; a server that sends a larger one is ended."""
MAX_HEADER_BYTES = 65_536
"""Maximum number of bytes before a message, including output that isn't part of the protocol."""
MAX_OPEN_ANSWERS = 200
"""Maximum number of messages that wait to be sent to a server that doesn't read them."""
MAX_ID = 10_000
"""Maximum length, in characters, of the id of a request that a language server sends."""
MAX_SAID = 300
"""Maximum number of characters that are quoted from a language server's message."""
_ERROR_BYTES = 4_000
"""How many bytes from the end of a server's standard error are kept."""
_EXIT_SECONDS = 1.0
"""Number of seconds to wait for a server to end after a message could not be sent to it, because
the server's exit code says more about the cause."""
_METHOD_NOT_FOUND = -32601
_LENGTH = re.compile(rb"content-length:\s*(\d{1,12})\s*$", re.IGNORECASE | re.MULTILINE)
_HEADER_END = b"\r\n\r\n"


class ServerError(Exception):
    """Raised if a language server can't be used, or gave no answer.

    The message has no subject, because callers put it after the server's name.
    """


class RefusedError(ServerError):
    """Raised if a language server answered a request with an error.

    ``code`` is the protocol's error code.
    """

    def __init__(self, code: object, said: str) -> None:
        super().__init__(f"refused: {said}")
        self.code = code


class Frames:
    """Splits the output of a language server into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Append output to the rest of earlier output, and yield the completed messages.

        Raises ServerError if the output breaks the protocol.
        """
        self._buffer += data
        while True:
            end = self._buffer.find(_HEADER_END, 0, MAX_HEADER_BYTES)
            if end < 0:
                if len(self._buffer) >= MAX_HEADER_BYTES:
                    raise ServerError("printed something that is not a message of the protocol")
                return
            found = _LENGTH.search(self._buffer[:end])
            if found is None:
                raise ServerError("sent a message without its length")
            size = int(found[1])
            if size > MAX_MESSAGE_BYTES:
                raise ServerError(f"sent a message of {size // 1_000_000:,} MB")
            first = end + len(_HEADER_END)
            if len(self._buffer) < first + size:
                return
            body = bytes(self._buffer[first : first + size])
            del self._buffer[: first + size]
            yield _message(body)


def _message(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise ServerError("sent a message that is not JSON") from None
    if not isinstance(message, dict):
        raise ServerError("sent a message that is not an object")
    return message


class Connection:
    """A server's process, and the connection to it.

    ``on_notification`` is called with the method and parameters of each notification from the
    server. ``on_request`` is called with those of each request from the server, and returns the
    result; it raises LookupError for an unknown method.
    """

    def __init__(
        self,
        command: Command,
        on_notification: Callable[[str, Any], None],
        on_request: Callable[[str, Any], Any],
    ) -> None:
        """Start the language server. Raises OSError if the server can't be started.

        This needs a running event loop.
        """
        self.why_ended = ""
        """The message of the `ServerError` that says why the server can't be used any more; ""
        while it can be used."""
        self.ended = asyncio.Event()
        self._on_notification = on_notification
        self._on_request = on_request
        self._frames = Frames()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending = asyncio.Lock()
        self._errors = bytearray()
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)  # noqa: FBT003 - it has no name
        try:
            self._process: StartedCommand = start(
                command, self._take, self._take_errors, stdin=theirs.fileno()
            )
        except BaseException:
            self._socket.close()
            raise
        finally:
            theirs.close()
        self._watching = asyncio.create_task(self._watch())

    async def request(self, method: str, params: Any, seconds: float) -> Any:
        """Send a request to the language server and return its result.

        Raises ServerError if the server has ended, answers with an error, or doesn't answer within
        ``seconds``.
        """
        if self.why_ended:
            raise ServerError(self.why_ended)
        number = next(self._numbers)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            async with asyncio.timeout(seconds):
                await self._send({"id": number, "method": method, "params": params})
                return await answer
        except (TimeoutError, asyncio.CancelledError) as error:
            self._send_later({"method": "$/cancelRequest", "params": {"id": number}})
            if isinstance(error, TimeoutError):
                raise ServerError(f"did not answer within {seconds:g} s") from None
            raise
        finally:
            del self._waiting[number]
            if answer.done() and not answer.cancelled():
                answer.exception()  # This marks the exception as retrieved if sending failed, too.

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification to the language server. Raises ServerError if it has ended."""
        await self._send({"method": method, "params": params})

    async def aclose(self) -> None:
        """End the server and the processes it started. Idempotent."""
        self.end("was ended")
        self._watching.cancel()
        for task in self._tasks:
            task.cancel()
        await self._process.stop()
        self._socket.close()

    async def _watch(self) -> None:
        await self._process.process.wait()
        await self._process.heard()
        code = self._process.process.returncode
        lines = plain_text(bytes(self._errors)).strip().splitlines()
        telling = [line for line in lines if "error" in line.lower()] or lines
        said = ""
        if telling:
            last = _plain(telling[-1]).rstrip(".")
            said = f": {last}"
        self.end(f"ended with exit code {code}{said}")

    def end(self, why: str) -> None:
        """Stop sending and receiving, without ending the process. Open requests raise ServerError.

        ``why`` is the message of that error. If this method is called again, ``why`` is ignored.
        """
        self.why_ended = self.why_ended or why
        self.ended.set()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ServerError(self.why_ended))

    # -- receiving ---------------------------------------------------------------------------------

    def _take_errors(self, chunk: bytes) -> None:
        self._errors += chunk
        del self._errors[:-_ERROR_BYTES]

    def _take(self, chunk: bytes) -> None:
        if self.why_ended:
            return
        try:
            for message in self._frames.feed(chunk):
                self._dispatch(message)
        except ServerError as error:
            self.end(str(error))

    def _dispatch(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        number = message.get("id")
        if not isinstance(method, str):
            self._answered(number, message)
        elif number is None:
            self._on_notification(method, message.get("params"))
        else:
            self._answer(number, method, message.get("params"))

    def _answered(self, number: object, message: dict[str, Any]) -> None:
        answer = None
        if isinstance(number, int):
            answer = self._waiting.get(number)
        if answer is None or answer.done():
            return
        error = message.get("error")
        if error is None:
            answer.set_result(message.get("result"))
            return
        code = error.get("code") if isinstance(error, dict) else None
        said = error.get("message") if isinstance(error, dict) else error
        answer.set_exception(RefusedError(code, _plain(said)))

    def _answer(self, number: object, method: str, params: Any) -> None:
        if not isinstance(number, int | str) or len(str(number)) > MAX_ID:
            raise ServerError("sent a request without a valid id")
        if len(self._tasks) >= MAX_OPEN_ANSWERS:
            raise ServerError("sends requests without reading the answers")
        try:
            self._send_later({"id": number, "result": self._on_request(method, params)})
        except LookupError:
            unknown = {"code": _METHOD_NOT_FOUND, "message": f"{_plain(method)} is not supported"}
            self._send_later({"id": number, "error": unknown})

    # -- sending -----------------------------------------------------------------------------------

    def _send_later(self, message: dict[str, Any]) -> None:
        """Send a message in the background; does nothing if the server has ended."""

        async def send() -> None:
            with contextlib.suppress(ServerError):
                await self._send(message)

        task = asyncio.create_task(send())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        async with self._sending:
            if self.why_ended:
                raise ServerError(self.why_ended)
            loop = asyncio.get_running_loop()
            try:
                await loop.sock_sendall(
                    self._socket, b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
                )
            except OSError:
                # The server has probably ended. Wait for that, because its exit code says more than
                # this error.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_EXIT_SECONDS):
                        await self.ended.wait()
                self.end("no longer reads its input")
                raise ServerError(self.why_ended) from None
            except asyncio.CancelledError:
                # Perhaps only a part of the message was sent, so the connection can't be used any
                # more.
                self.end("did not read all of a request")
                raise


def _plain(said: object) -> str:
    """Return a server's message as one redacted line of at most ``MAX_SAID`` characters."""
    return remove_secrets(one_line(str(said), MAX_SAID))

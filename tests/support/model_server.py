"""A scripted model provider on 127.0.0.1 that speaks OpenAI chat completions and Responses, Anthropic, Ollama, Gemini.

It plays a list of turns (or asks a function for each), records every request, and can fail in every way a provider
fails.
"""

import asyncio
import dataclasses
import itertools
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Self

from tests.support.model_script import AUTO, Call, Fault, Recorded, Script, Turn, echo, status
from tests.support.model_wire import EVENTS, PATHS, encode_event, error_body

__all__ = ["Call", "Fault", "ModelServer", "Recorded", "Turn", "echo", "refused_url", "status"]

_FOREVER = 3600.0


class _GoneError(Exception):
    """The client closed the connection."""


class _Connection(asyncio.Protocol):
    """One connection: reads requests one after the other, answers each, notices when the client leaves."""

    def __init__(self, server: "ModelServer", number: int) -> None:
        self.server = server
        self.number = number
        self.buffer = bytearray()
        self.arrived = asyncio.Event()
        self.gone = asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()
        self.transport: asyncio.Transport | None = None
        self.task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.task = asyncio.ensure_future(self._serve())

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self.arrived.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        self.arrived.set()
        self.writable.set()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    async def write(self, data: bytes, size: int | None = None) -> None:
        """Send bytes, in pieces of ``size``; raise when the client left."""
        assert self.transport is not None
        for start in range(0, len(data), size or max(1, len(data))):
            if self.gone.is_set():
                raise _GoneError
            self.transport.write(data[start : start + size] if size else data)
            if size:
                await asyncio.sleep(0)
            await self.writable.wait()

    async def pause(self, seconds: float) -> None:
        """Wait, but not longer than the client does."""
        if seconds <= 0:
            return
        try:
            await asyncio.wait_for(self.gone.wait(), seconds)
        except TimeoutError:
            return
        raise _GoneError

    async def _read(self, done: Callable[[bytearray], bool]) -> None:
        while not done(self.buffer):
            if self.gone.is_set():
                raise _GoneError
            self.arrived.clear()
            await self.arrived.wait()

    async def _request(self) -> Recorded:
        await self._read(lambda data: b"\r\n\r\n" in data)
        head, _, rest = bytes(self.buffer).partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {
            key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)
        }
        length = int(headers.get("content-length", "0"))
        start = len(self.buffer) - len(rest)
        await self._read(lambda data: len(data) >= start + length)
        body = bytes(self.buffer[start : start + length])
        del self.buffer[: start + length]
        return Recorded(method, path, headers, body, self.number)

    async def _serve(self) -> None:
        assert self.transport is not None
        try:
            while True:
                request = await self._request()
                try:
                    keep = await self.server._answer(self, request)
                    request.finished = True
                except _GoneError:
                    request.aborted = True
                    raise
                finally:
                    self.server._changed()
                if not keep:
                    break
        except _GoneError:
            pass
        finally:
            self.transport.close()


class ModelServer:
    """The server, in a thread of its own. Use as a context manager; ``script`` may be replaced at any time."""

    def __init__(
        self, script: Script = echo, *, models: Mapping[str, int] | None = None, port: int = 0
    ) -> None:
        self.script: Script = script
        self.models = dict(models or {})
        self.requests: list[Recorded] = []
        self.port = port
        self.compacts = True
        """Whether there is ``/responses/compact``, and ``compaction`` in messages."""
        self._turns = itertools.count()
        self._next = 0
        self._connections = itertools.count()
        self._state = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()

    # -- what tests use ---------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Base address for Anthropic clients."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """Base address for OpenAI clients."""
        return f"{self.url}/v1"

    @property
    def calls(self) -> list[Recorded]:
        """The requests for an answer, without lists of models and the like."""
        return [
            request
            for request in self.requests
            if request.method == "POST" and "show" not in request.path
        ]

    def play(self, *turns: Turn) -> None:
        """Start a new script and forget what was recorded."""
        with self._state:
            self.script, self._next = turns, 0
            self.requests.clear()

    def play_function(self, function: Callable[[Recorded], Turn]) -> None:
        """Ask ``function`` for each turn from now on and forget what was recorded."""
        with self._state:
            self.script, self._next = function, 0
            self.requests.clear()

    async def until(
        self, condition: Callable[["ModelServer"], bool], timeout: float = 10.0
    ) -> None:
        """Wait until a condition on the server holds, from a coroutine."""
        held = await asyncio.to_thread(self.wait, condition, timeout)
        assert held, f"the server never got there; requests: {self.requests}"

    def wait(self, condition: Callable[["ModelServer"], bool], timeout: float = 10.0) -> bool:
        """Wait until a condition on the server holds; False when it took too long."""
        with self._state:
            return self._state.wait_for(lambda: condition(self), timeout)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    # -- inside -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        create = self._loop.create_server(
            lambda: _Connection(self, next(self._connections)), "127.0.0.1", self.port
        )
        server = self._loop.run_until_complete(create)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    def _changed(self) -> None:
        with self._state:
            self._state.notify_all()

    def _turn(self, request: Recorded) -> Turn:
        with self._state:
            if callable(self.script):
                script = self.script
            else:
                index, self._next = self._next, self._next + 1
                if index >= len(self.script):
                    return status(400, "the script is over")
                return self.script[index]
        return script(request)

    async def _answer(self, connection: _Connection, request: Recorded) -> bool:
        with self._state:
            self.requests.append(request)
            self._state.notify_all()
        path = request.path.partition("?")[0]
        if path.endswith("/messages") and "compaction" in request.json:
            return await self._send_json(
                connection, *(compacted(request) if self.compacts else _NO_COMPACTION)
            )
        for end, wire in PATHS.items():
            if path.endswith(end):
                return await self._play(connection, request, wire)
        return await self._extras(connection, path, request)

    async def _extras(self, connection: _Connection, path: str, request: Recorded) -> bool:
        """Answer lists of models, as LM Studio, llama.cpp, vLLM and Ollama do."""
        if path == "/v1/models" and self.models:
            rows = [
                {"id": name, "object": "model", "max_model_len": size}
                for name, size in self.models.items()
            ]
            return await self._send_json(connection, 200, {"object": "list", "data": rows})
        if path == "/api/tags" and self.models:
            rows = [{"name": name, "model": name} for name in self.models]
            return await self._send_json(connection, 200, {"models": rows})
        if path == "/api/show" and self.models:
            size = self.models[request.json["model"]]
            info = {"general.architecture": "llama", "llama.context_length": size}
            return await self._send_json(
                connection, 200, {"model_info": info, "capabilities": ["tools"]}
            )
        if path.endswith("/responses/compact") and self.compacts:
            item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "b3BhcXVl"}
            output = [
                *(
                    said
                    for said in request.json["input"]
                    if said.get("role") in ("developer", "user")
                ),
                item,
            ]
            usage = {"input_tokens": 900, "output_tokens": 70, "total_tokens": 970}
            return await self._send_json(
                connection, 200, {"id": "resp_1", "output": output, "usage": usage}
            )
        return await self._send_json(connection, 404, {"error": "not found"})

    async def _send_json(
        self,
        connection: _Connection,
        code: int,
        data: Any,
        headers: Mapping[str, str] | None = None,
    ) -> bool:
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        more = "".join(f"{key}: {value}\r\n" for key, value in (headers or {}).items())
        reason = HTTPStatus(code).phrase if code in {item.value for item in HTTPStatus} else "Error"
        head = (
            f"HTTP/1.1 {code} {reason}\r\ncontent-type: application/json\r\n"
            f"{more}content-length: {len(body)}\r\n\r\n"
        )
        await connection.write(head.encode() + body)
        return True

    async def _play(self, connection: _Connection, request: Recorded, wire: str) -> bool:
        number = next(self._turns)
        turn = self._turn(request)
        if turn.usage == AUTO:
            turn = dataclasses.replace(turn, usage=request.honest_usage)
        fault = turn.fault
        if fault and fault.kind == "silent":
            await connection.pause(_FOREVER)
        await connection.pause(turn.first_delay)
        if fault and fault.kind == "status":
            scripted = error_body(wire, fault.status, fault.message, fault.code)
            body = scripted if fault.body is None else fault.body
            return await self._send_json(connection, fault.status, body, fault.headers)
        if turn.events is not None:
            events = iter([(event.get("type"), dict(event)) for event in turn.events])
        else:
            events = EVENTS[wire](turn, request, number)
        return await self._stream(connection, turn, events, wire)

    async def _stream(
        self, connection: _Connection, turn: Turn, events: Iterator[Any], wire: str
    ) -> bool:
        await connection.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        batch = bytearray()
        for position, event in enumerate(events):
            if turn.fault and position == turn.fault.after:
                await self._flush(connection, batch, turn)
                if not await self._break(connection, turn.fault, wire):
                    return False
            data = encode_event(event)
            batch += f"{len(data):x}\r\n".encode() + data + b"\r\n"
            if turn.delay or len(batch) > 65_536:
                await self._flush(connection, batch, turn)
                await connection.pause(turn.delay)
        if wire == "openai":
            batch += b"e\r\ndata: [DONE]\n\n\r\n"
        batch += b"0\r\n\r\n"
        await self._flush(connection, batch, turn)
        return True

    @staticmethod
    async def _flush(connection: _Connection, batch: bytearray, turn: Turn) -> None:
        data = bytes(batch)
        batch.clear()
        if data:
            await connection.write(data, turn.wire_bytes)

    @staticmethod
    async def _break(connection: _Connection, fault: Fault, wire: str) -> bool:
        """Play a fault in the middle of a stream; True when the stream goes on after it."""
        assert connection.transport is not None
        match fault.kind:
            case "stall":
                await connection.pause(_FOREVER)
            case "malformed":
                data = b'data: {"choices": [{"delta": {"content": \n\n'
                await connection.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                return True
            case "stream_error":
                body = error_body(wire, fault.status, fault.message, fault.code)
                data = encode_event(("error" if wire == "anthropic" else None, body))
                await connection.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        connection.transport.abort() if fault.kind == "cut" else connection.transport.close()
        return False


BLOCK = {
    "type": "compaction",
    "content": "Summary of the conversation: they talked.",
    "signature": "EuYBCkQY==",
}
_NO_COMPACTION = (
    400,
    error_body("anthropic", 400, "compaction: Extra inputs are not permitted", None),
)


def compacted(request: Recorded) -> tuple[int, dict[str, Any]]:
    """Return what Anthropic answers a request for a summary with."""
    if "compact-2026-09-04" not in request.headers.get("anthropic-beta", ""):
        return _NO_COMPACTION
    step = {"type": "compaction", "input_tokens": 144, "output_tokens": 276}
    usage = {"input_tokens": 0, "output_tokens": 0, "iterations": [step]}
    return 200, {"type": "message", "content": [BLOCK], "stop_reason": "compaction", "usage": usage}


def refused_url() -> str:
    """The address of a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"

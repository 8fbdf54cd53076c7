"""A web server on 127.0.0.1 that says what a test wants, byte for byte."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

Answer = bytes | Callable[[asyncio.StreamWriter], object]


def answer(body: str | bytes = b"", kind: str = "text/html", status: str = "200 OK", **headers: str) -> bytes:
    """Return an answer as it goes over the wire; underscores in header names become dashes."""
    data = body if isinstance(body, bytes) else body.encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", *([f"Content-Type: {kind}"] if kind else [])]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


@dataclass
class WebServer:
    """``answers`` are found by path; ``requests`` are heads as they came."""

    port: int = 0
    answers: dict[str, bytes] = field(default_factory=dict)
    endless: set[str] = field(default_factory=set)
    """Paths whose answer is never finished."""
    requests: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(head)
            path = head.split()[1]
            writer.write(self.answers.get(path, answer("nothing here", status="404 Not Found")))
            await writer.drain()
            if path in self.endless:
                await reader.read()
        writer.close()


@contextlib.asynccontextmanager
async def web_server(tls: ssl.SSLContext | None = None) -> AsyncIterator[WebServer]:
    """Serve until the end of the block."""
    state = WebServer()
    server = await asyncio.start_server(state.serve, "127.0.0.1", 0, ssl=tls)
    state.port = server.sockets[0].getsockname()[1]
    try:
        yield state
    finally:
        server.close()

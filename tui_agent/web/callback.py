"""Waits for the user's browser to return from a login page to a port of this machine."""

import asyncio
import contextlib
import socket
from urllib.parse import parse_qs, urlsplit

_DONE = "You are logged in. You can close this page and go back to the terminal."
_REFUSED = "The login was refused. You can close this page."
_LONGEST_LINE = 16 << 10


class Callback:
    """Listens on one port for the parameters that the login page adds to the address."""

    def __init__(self, port: int = 0, path: str = "/callback") -> None:
        self.port = port
        """The port; 0, for any free one, until ``listen`` has chosen."""
        self.path = path
        self._server: asyncio.Server | None = None
        self._answer: asyncio.Future[dict[str, str]] | None = None

    async def listen(self) -> None:
        """Begin to listen; raises OSError if the port is in use."""
        self._answer = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, limit=_LONGEST_LINE
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def wait(self) -> dict[str, str]:
        """Wait for the answer and return its parameters, with a ``code`` or an ``error``."""
        if self._answer is None:
            raise RuntimeError("the callback does not listen")
        return await asyncio.shield(self._answer)

    def give(self, values: dict[str, str]) -> None:
        """Take an answer that came another way, such as pasted; the first answer counts."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(values)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError):
            line = (await reader.readline()).decode("latin-1").split()
            address = urlsplit(line[1] if len(line) > 1 else "")
            values = answer_in(address.query)
            found = address.path == self.path and bool(values)
            status = "200 OK"
            body = _DONE if "code" in values else _REFUSED
            if not found:
                status = "404 Not Found"
                body = "Not here."
            head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nConnection: close\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            if found:
                self.give(values)
            await writer.drain()
        writer.close()


def answer_in(query: str) -> dict[str, str]:
    values = {name: texts[0] for name, texts in parse_qs(query).items()}
    return values if {"code", "error"} & values.keys() else {}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

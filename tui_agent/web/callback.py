"""Receives the result of an OAuth login, by listening on the local port of the redirect URL."""

import asyncio
import contextlib
import socket
from urllib.parse import parse_qs, urlsplit

_DONE = "You are logged in. You can close this page and go back to the terminal."
_REFUSED = "The login was refused. You can close this page."
_LONGEST_LINE = 16 << 10
"""Maximum length, in bytes, of the first line of the browser's request."""


class Callback:
    """Listens on a port of this machine for the request with the login's result.

    The result is in the parameters that the login page adds to the redirect's URL.
    """

    def __init__(self, port: int = 0, path: str = "/callback") -> None:
        self.port = port
        """The port to listen on. If 0, ``listen`` chooses a free one and sets it here."""
        self.path = path
        self._server: asyncio.Server | None = None
        self._answer: asyncio.Future[dict[str, str]] | None = None

    async def listen(self) -> None:
        """Start listening; raises OSError if the port is in use."""
        self._answer = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, limit=_LONGEST_LINE
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def wait(self) -> dict[str, str]:
        """Wait for the login's result and return its parameters, with a ``code`` or an ``error``.

        Raises RuntimeError before ``listen``.
        """
        if self._answer is None:
            raise RuntimeError("the callback is not listening")
        return await asyncio.shield(self._answer)

    def give(self, values: dict[str, str]) -> None:
        """Set the login's result, for example one that the user pasted.

        Only the first result counts.
        """
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
    """Return the parameters of a URL's query; empty if there is neither ``code`` nor ``error``."""
    values = {name: texts[0] for name, texts in parse_qs(query).items()}
    return values if {"code", "error"} & values.keys() else {}


def free_port() -> int:
    """Return a TCP port of this machine that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

"""A server on 127.0.0.1 that answers paths with JSON, and remembers who asked for what."""

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class ThreadedServer:
    """A server on a port of its own, in a thread; use it as a context manager."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        handler.log_message = lambda *_: None  # type: ignore[method-assign]
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class ListServer(ThreadedServer):
    """Answers each path of ``answers`` with its JSON, or with a status where that is a number; others with 404.

    With ``wanted``, a header and its value, requests without that are refused with 401, in words that repeat it.
    """

    def __init__(self, answers: Mapping[str, Any], wanted: tuple[str, str] | None = None) -> None:
        self.answers = dict(answers)
        self.wanted = wanted
        self.asked: list[tuple[str, dict[str, str]]] = []
        """Paths and headers, names in lower case."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(
                    (self.path, {name.lower(): value for name, value in self.headers.items()})
                )
                length = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(length)) if length else {}
                answer = outer.answers.get(
                    f"{self.path}#{body.get('model')}" if body else self.path, 404
                )
                status = answer if isinstance(answer, int) else 200
                data = b"{}" if isinstance(answer, int) else json.dumps(answer).encode()
                if (
                    outer.wanted is not None
                    and (given := self.headers.get(outer.wanted[0])) != outer.wanted[1]
                ):
                    told = {
                        "error": {
                            "message": f"Incorrect API key provided: {given}",
                            "code": "invalid_api_key",
                        }
                    }
                    status, data = 401, json.dumps(told).encode()
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("location", "http://127.0.0.1:9/elsewhere")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_GET  # noqa: N815 - the name is http.server's

        super().__init__(Handler)

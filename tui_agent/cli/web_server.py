"""The server of ``tui-agent web``: who may use it, and a program for each tab, over textual-serve."""

import asyncio
import hmac
import os
import secrets
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import textual_serve
from aiohttp import WSCloseCode, web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from tui_agent.resources import style_path

COOKIE_NAME = "tui-agent"
STATIC = Path(textual_serve.__file__).parent / "static"
SECONDS_TO_END = 10.0
"""Seconds the program of a closed tab has to end before it is terminated, and again before it is killed."""
MAX_SIZE = 1000
"""Columns and rows at most; what asks for more is no screen."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; img-src 'self' data:; "
    "connect-src 'self' ws://{host}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy of every answer: the page loads nothing from anywhere else, and nobody can frame it."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class TabProgram(AppService):  # type: ignore[misc]  # the extra may be missing where types are checked
    """The program of one tab."""

    _task: asyncio.Task[None] | None
    """Reads what the program draws, until it ends."""

    def __init__(self, program: Sequence[str], arguments: Sequence[str], **ports: Any) -> None:
        super().__init__(program[0], **ports)
        self._program, self._arguments = program, arguments

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        """Start the program itself, without a shell, in a session of its own: the server ends it, no key does."""
        environment = {name: value for name, value in os.environ.items() if name not in {"TMUX", "STY", "NO_COLOR"}}
        environment |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "TERM_PROGRAM": "browser"}
        size = f"--in-browser={width}x{height}"
        self._process = await asyncio.create_subprocess_exec(
            *self._program,
            size,
            *self._arguments,
            stdin=PIPE,
            stdout=PIPE,
            stderr=None,  # why it could not start is told where the server was started
            env=environment,
            start_new_session=True,
        )
        self._stdin = self._process.stdin
        self._process.stderr = asyncio.StreamReader()  # textual-serve reads one
        self._process.stderr.feed_eof()
        return self._process

    async def stop(self) -> None:
        """Ask the program to end, and see to it that it does."""
        if self._task is None or self._process is None:
            return
        await self._download_manager.cancel_app_downloads(app_service_id=self.app_service_id)
        await self.send_meta({"type": "quit"})
        for insist in (self._process.terminate, self._process.kill):
            done, _ = await asyncio.wait({self._task}, timeout=SECONDS_TO_END)
            if done:
                break
            with suppress(ProcessLookupError):
                insist()
        await self._task
        await self._process.wait()
        self._task = None


class TabServer(Server):  # type: ignore[misc]
    """Serves the page to whoever has the token, and to no page of another origin."""

    def __init__(self, program: Sequence[str], arguments: Sequence[str], *, port: int, token: str) -> None:
        """Serve a program.

        Args:
            program: the words that start it; the size of the tab comes after them.
            arguments: what comes last.
            port: where the server listens, which a request has to name as its host.
            token: what the first request has to have as ``?token=``.
        """
        super().__init__(program[0], host="127.0.0.1", port=port, title="tui-agent")
        self._program, self._arguments = program, arguments
        self._token = token
        self._cookie = secrets.token_urlsafe(32)
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._tabs: set[web.WebSocketResponse] = set()

    def application(self) -> web.Application:
        """Return the application with its routes; nothing is answered that `_guard` refuses."""
        application = web.Application(middlewares=[self._guard])
        application.add_routes(
            [
                web.get("/", self.handle_index),
                web.get("/browser.js", self._script),
                web.get("/ws", self.handle_websocket),
                web.get("/download/{key}", self.handle_download),
                web.static("/static", STATIC),
            ]
        )
        application.on_response_prepare.append(self._add_headers)
        application.on_shutdown.append(self.on_shutdown)
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let a request through that names this server, comes from its own page and has the cookie or the token.

        The name keeps out sites whose own name was made to lead here (DNS rebinding); the origin, which browsers
        send with every websocket, pages of other sites.
        """
        origin = request.headers.get("Origin", "" if request.path == "/ws" else f"http://{request.host}")
        if request.host not in self._hosts or origin != f"http://{request.host}":
            raise web.HTTPForbidden
        if request.path == "/" and (given := request.query.get("token")) is not None:
            if not _same(given, self._token):
                raise web.HTTPForbidden
            # The address without the token is what history and bookmarks keep.
            answer = web.HTTPSeeOther("/")
            answer.set_cookie(COOKIE_NAME, self._cookie, httponly=True, samesite="Strict", path="/")
            raise answer
        if not _same(request.cookies.get(COOKIE_NAME, ""), self._cookie):
            raise web.HTTPForbidden
        return await handler(request)

    async def _add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        host = request.host if request.host in self._hosts else "127.0.0.1"
        response.headers["Content-Security-Policy"] = POLICY.format(host=host)
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers.setdefault("Cache-Control", "no-store")

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        """Answer with the page, which is ours: the one of textual-serve loads a font from the network."""
        del request
        return web.FileResponse(style_path("browser.html"))

    async def _script(self, request: web.Request) -> web.StreamResponse:
        del request
        return web.FileResponse(style_path("browser.js"))

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Start a program for a tab, carry what is typed and drawn, and end it with the tab."""
        websocket = web.WebSocketResponse(heartbeat=15)
        await websocket.prepare(request)
        self._tabs.add(websocket)
        program = TabProgram(
            self._program,
            self._arguments,
            write_bytes=websocket.send_bytes,
            write_str=websocket.send_str,
            close=websocket.close,
            download_manager=self.download_manager,
        )
        width, height = (
            max(1, min(MAX_SIZE, to_int(request.query.get(name, ""), usual)))
            for name, usual in (("width", 80), ("height", 24))
        )
        try:
            await program.start(width, height)
            await self._process_messages(websocket, program)
        finally:
            self._tabs.discard(websocket)
            # Also when the request itself is cancelled: a program nobody sees must not go on.
            await asyncio.shield(program.stop())
        return websocket

    async def on_shutdown(self, app: web.Application) -> None:
        del app
        await asyncio.gather(*(tab.close(code=WSCloseCode.GOING_AWAY) for tab in list(self._tabs)))


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())

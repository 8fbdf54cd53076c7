"""``tui-agent web``: who may use the server, and that a tab's program lives as long as its tab."""

import asyncio
import builtins
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.processes import alive, eventually
from tui_agent.cli.arguments import UsageError, parse
from tui_agent.cli.main import run

pytest.importorskip("textual_serve", reason="the extra `web` is not installed")

from aiohttp import ClientSession, ClientWebSocketResponse, CookieJar, WSServerHandshakeError, web

from tui_agent.cli.web_server import TabServer

TOKEN = "right-token"


class Served:
    """A running server, and a client that keeps cookies."""

    def __init__(self, port: int, client: ClientSession) -> None:
        self.port = port
        self.client = client
        self.base = f"http://127.0.0.1:{port}"

    async def status(self, path: str, headers: Mapping[str, str] = {}) -> int:
        async with self.client.get(self.base + path, headers=headers, allow_redirects=False) as answer:
            return answer.status

    async def log_in(self) -> None:
        assert await self.status(f"/?token={TOKEN}") == 303


@asynccontextmanager
async def serving(home: Path, *arguments: str) -> AsyncIterator[Served]:
    words = ["env", f"HOME={home}", f"TUI_AGENT_CONFIG_DIR={home}", f"TUI_AGENT_DATA_DIR={home / 'data'}"]
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    port = bound.getsockname()[1]
    server = TabServer(
        [*words, sys.executable, "-P", "-m", "tui_agent"], ["--demo", *arguments], port=port, token=TOKEN
    )
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=30)
    await runner.setup()
    await web.SockSite(runner, bound).start()
    # Cookies of a bare address are refused by the client otherwise; browsers keep them.
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as client:
        try:
            yield Served(port, client)
        finally:
            await runner.cleanup()


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as server:
        yield server


async def drawn(tab: ClientWebSocketResponse, text: bytes) -> None:
    """Read what the program of a tab draws until it has a text in it."""
    seen = b""
    async with asyncio.timeout(60):
        while text not in seen:
            seen += await tab.receive_bytes()


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", "/?token=%C3%A9", "/ws", "/static/js/textual.js"])
async def test_without_the_token_nothing_is_answered_and_nothing_is_said(served: Served, path: str) -> None:
    async with served.client.get(served.base + path, allow_redirects=False) as answer:
        assert answer.status == 403
        assert await answer.text() == "403: Forbidden"
        assert not answer.cookies


async def test_the_token_becomes_a_cookie_and_leaves_the_address(served: Served) -> None:
    async with served.client.get(f"{served.base}/?token={TOKEN}", allow_redirects=False) as answer:
        assert answer.status == 303
        assert answer.headers["Location"] == "/"
        cookie = answer.cookies["tui-agent"]
        assert cookie["httponly"]
        assert cookie["samesite"] == "Strict"
        assert TOKEN not in cookie.value
    async with served.client.get(f"{served.base}/") as answer:
        assert answer.status == 200
        page = await answer.text()
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "http://" not in page
    assert "https://" not in page
    for path in ("/browser.js", "/static/js/textual.js", "/static/css/xterm.css"):
        assert await served.status(path) == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost"])
async def test_a_name_that_was_made_to_lead_here_is_refused(served: Served, host: str) -> None:
    await served.log_in()
    named = {"Host": host.format(port=served.port)}
    assert await served.status("/", named) == 403
    assert await served.status(f"/?token={TOKEN}", named) == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:1", "https://127.0.0.1:{port}", "null", ""]
)
async def test_a_page_of_another_origin_gets_no_websocket(served: Served, origin: str) -> None:
    await served.log_in()
    headers = {"Origin": origin.format(port=served.port)} if origin else {}
    with pytest.raises(WSServerHandshakeError) as refused:
        await served.client.ws_connect(f"{served.base}/ws", headers=headers)
    assert refused.value.status == 403


async def test_a_tab_has_a_program_of_its_own_that_ends_with_it(served: Served, tmp_path: Path) -> None:
    await served.log_in()

    async def tab() -> tuple[ClientWebSocketResponse, int]:
        before = {child.pid for child in psutil.Process().children()}
        socket = await served.client.ws_connect(f"{served.base}/ws?width=100&height=30", origin=served.base)
        await drawn(socket, b"Type tour")
        (pid,) = {child.pid for child in psutil.Process().children()} - before
        return socket, pid

    (first, one), (second, two) = await tab(), await tab()
    await first.send_json(["focus"])
    await first.send_json(["stdin", "explain this project\r"])
    await drawn(first, b"subtotal")
    await first.close()
    await eventually(lambda: not alive(one), "the program of a closed tab goes on")
    assert alive(two)
    await second.send_json(["stdin", "\x11"])
    await eventually(lambda: not alive(two), "ctrl+q in a tab does not end its program")
    listing = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tui_agent", "sessions", "list", stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TUI_AGENT_DATA_DIR": str(tmp_path / "data"),
             "TUI_AGENT_CONFIG_DIR": str(tmp_path)},
    )  # fmt: skip
    out, _ = await listing.communicate()
    assert b"explain this project" in out
    assert b"open elsewhere" not in out


async def test_why_a_program_could_not_start_is_told_at_the_server(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with serving(tmp_path, "-r", "nosuch") as served:
        await served.log_in()
        async with asyncio.timeout(60), served.client.ws_connect(f"{served.base}/ws", origin=served.base) as tab:
            async for _ in tab:
                pass
    assert "There is no session “nosuch”" in capfd.readouterr().err


async def test_the_end_of_the_server_ends_the_programs_of_all_tabs(tmp_path: Path) -> None:
    before = {child.pid for child in psutil.Process().children()}
    async with serving(tmp_path) as served:
        await served.log_in()
        tabs = [await served.client.ws_connect(f"{served.base}/ws", origin=served.base) for _ in range(2)]
        for tab in tabs:
            assert await tab.receive_bytes(timeout=60)
        started = {child.pid for child in psutil.Process().children()} - before
        assert len(started) == 2
    assert not [pid for pid in started if alive(pid)]


def test_a_missing_extra_is_told_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name == "textual_serve":
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    assert run(["web"]) == 2
    assert '-m pip install "textual-serve' in capsys.readouterr().err


def test_a_port_that_is_taken_is_told_and_the_usual_one_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    from tui_agent.cli import web as command

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run(["web", "--port", str(port)]) == 2
        assert f"Cannot use port {port}" in capsys.readouterr().err
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(command, "DEFAULT_PORT", port)
            with command.bind(None) as free:
                assert free.getsockname()[0] == "127.0.0.1"
                assert free.getsockname()[1] != port


def test_the_options_of_the_program_go_to_each_tab() -> None:
    arguments = parse(["web", "--demo", "--port", "9000", "-m", "openai/gpt-5"])
    assert arguments.port == 9000
    assert arguments.rest == ["--demo", "-m", "openai/gpt-5"]


@pytest.mark.parametrize("words", [["-p", "hi"], ["doctor"], ["--nonsense"], ["--port", "0"], ["--port", "99999"]])
def test_what_no_tab_could_show_is_refused(words: list[str]) -> None:
    with pytest.raises(UsageError):
        parse(["web", *words])

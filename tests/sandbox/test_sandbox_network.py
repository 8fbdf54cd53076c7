"""The only way out of the sandbox: a proxy that asks about every host and reaches no private address."""

import asyncio
import base64
import contextlib
import os
import shutil
import socket
import urllib.request
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tests.support.contained import Contained
from tests.support.processes import eventually
from tests.support.tooling import Workspace
from tui_agent.processes.jobs import Job, Jobs
from tui_agent.sandbox import EVERY_HOST, Grants, View, find_sandbox, open_ports
from tui_agent.sandbox.hosts import PrivateHosts
from tui_agent.sandbox.network import Gateway, Proxy, SessionNetwork
from tui_agent.sandbox.open_ports import OpenPorts, listening_ports
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.tools.bash import BashInput, BashTool

pytestmark = pytest.mark.daily(2, any_of=("plain",))
linux = pytest.mark.skipif(find_sandbox().kind != "bubblewrap", reason="needs bubblewrap")


@dataclass
class Far:
    """A server on this machine that stands for one on the internet, and what it was sent."""

    port: int = 0
    seen: list[bytes] = field(default_factory=list)


@pytest.fixture
async def far() -> AsyncIterator[Far]:
    far = Far()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far.seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    far.port = server.sockets[0].getsockname()[1]
    yield far
    server.close()


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """A proxy for which example.org is the far server, and 127.0.0.1 as good as public; 127.0.0.2 is private."""

    async def look(host: str, _port: int) -> list[str]:
        known = {
            "example.org": ["127.0.0.1"],
            "rebound.org": ["127.0.0.1", "127.0.0.2"],
            "inside.org": ["127.0.0.2"],
        }
        if host not in known:
            raise OSError(f"no address of {host}")
        return known[host]

    proxy = Proxy(look, reaches=lambda address: address == "127.0.0.1")
    await proxy.serve(socket.create_server(("127.0.0.1", 0)))
    yield proxy
    await proxy.aclose()


async def said(proxy: Proxy, address: str, request: str, after: str = "") -> str:
    """Send a request with the password that an address names, and something after a tunnel is there."""
    user = address.removeprefix("http://").partition("@")[0]
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    secret = base64.b64encode(user.encode()).decode()
    writer.write(
        f"{request}\r\nProxy-Authorization: Basic {secret}\r\nX-Kept: yes\r\n\r\n".encode()
    )
    answer = b""
    if after:
        answer = await reader.readuntil(b"\r\n\r\n")
        writer.write(after.encode())
    answer += await reader.read()
    writer.close()
    return answer.decode()


async def test_a_host_that_was_opened_is_reached_both_ways(proxy: Proxy, far: Far) -> None:
    address = proxy.open(Gateway(frozenset({"example.org"})))
    plain = await said(
        proxy, address, f"GET http://example.org:{far.port}/a?b=c HTTP/1.1\r\nHost: example.org"
    )
    tunnel = await said(
        proxy, address, f"CONNECT example.org:{far.port} HTTP/1.1", "GET /t HTTP/1.1\r\n\r\n"
    )
    assert plain.endswith("hello")
    assert tunnel.startswith("HTTP/1.1 200")
    assert tunnel.endswith("hello")
    assert far.seen[0].startswith(b"GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nX-Kept: yes\r\n")
    assert b"authorization" not in far.seen[0].lower()


async def test_a_host_is_asked_about_once_for_each_command(proxy: Proxy, far: Far) -> None:
    asked: list[tuple[str, int]] = []

    async def allow(host: str, port: int) -> None:
        asked.append((host, port))
        await asyncio.sleep(0)

    address = proxy.open(Gateway(allow_host=allow))
    get = f"GET http://example.org:{far.port}/ HTTP/1.1"
    answers = await asyncio.gather(*(said(proxy, address, get) for _ in range(3)))
    assert all(answer.endswith("hello") for answer in answers)
    assert asked == [("example.org", far.port)]


async def test_a_host_that_nobody_allows_is_refused_and_not_even_looked_up(
    proxy: Proxy, far: Far
) -> None:
    gateway = Gateway()
    answer = await said(proxy, proxy.open(gateway), "CONNECT unheard-of.org:443 HTTP/1.1")
    assert answer.startswith("HTTP/1.1 403")
    assert "does not let this command reach unheard-of.org" in answer
    assert list(gateway.refused) == ["unheard-of.org"]
    assert far.seen == []


async def test_a_question_that_outlives_its_command_is_named(proxy: Proxy) -> None:
    asked = asyncio.Event()
    withdrawn = asyncio.Event()

    async def allow(_host: str, _port: int) -> str:
        asked.set()
        try:
            return await asyncio.Future[str]()
        finally:
            withdrawn.set()

    gateway = Gateway(allow_host=allow)
    address = proxy.open(gateway)
    waiting = asyncio.create_task(said(proxy, address, "CONNECT example.org:443 HTTP/1.1"))
    await asked.wait()
    proxy.close(gateway)
    await withdrawn.wait()
    assert (await waiting).startswith("HTTP/1.1 403")
    why = "The command ended before the user had answered whether it may reach example.org."
    assert gateway.refused == {"example.org": why}
    assert not gateway.closed


@pytest.mark.parametrize(
    "host",
    ["inside.org", "rebound.org", "127.0.0.2", "10.0.0.1", "[::1]", "localhost", "a.localhost"],
)
async def test_private_addresses_are_not_reached_and_no_answer_opens_them(
    proxy: Proxy, host: str
) -> None:
    gateway = Gateway(frozenset({EVERY_HOST}))
    answer = await said(proxy, proxy.open(gateway), f"CONNECT {host}:80 HTTP/1.1")
    assert answer.startswith("HTTP/1.1 403")
    assert "[sandbox] hosts" in answer
    assert gateway.closed == set(gateway.refused) == {host.strip("[]")}


@pytest.mark.parametrize("host", ["127.0.0.2", "npm", "npm.corp", "git.lan", "localhost"])
async def test_nobody_is_asked_about_a_host_that_stays_closed(host: str) -> None:
    """A name of this machine's own network is looked up first; that tells no stranger anything."""
    asked: list[str] = []

    async def allow(host: str, _port: int) -> None:
        asked.append(host)

    async def look(_host: str, _port: int) -> list[str]:
        return ["10.1.2.3"]

    proxy = Proxy(look)
    await proxy.serve(socket.create_server(("127.0.0.1", 0)))
    answer = await said(
        proxy, proxy.open(Gateway(allow_host=allow)), f"CONNECT {host}:443 HTTP/1.1"
    )
    assert f"Commands can't reach {host}" in answer
    assert asked == []
    await proxy.aclose()


@pytest.mark.parametrize(
    ("entry", "host"),
    [
        ("npm.corp", "npm.corp"),
        ("*.corp", "npm.corp"),
        ("127.0.0.0/8", "127.0.0.1"),
        ("127.0.0.1", "npm.company.com"),
    ],
)
async def test_a_private_host_that_the_user_names_is_reached(
    far: Far, entry: str, host: str
) -> None:
    asked: list[str] = []

    async def allow(host: str, _port: int) -> None:
        asked.append(host)

    async def look(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    hosts = SandboxSettings(hosts=(entry,)).hosts
    proxy = Proxy(look, PrivateHosts(hosts))
    await proxy.serve(socket.create_server(("127.0.0.1", 0)))
    answer = await said(
        proxy, proxy.open(Gateway(allow_host=allow)), f"GET http://{host}:{far.port}/ HTTP/1.1"
    )
    assert answer.endswith("hello")
    assert asked == ([host] if entry == "127.0.0.1" else [])
    await proxy.aclose()


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "192.168.0.1", "::1", "fe80::1%eth0", "fd00::1", "0.0.0.0",
     "::ffff:127.0.0.1", "64:ff9b::7f00:1", "100.64.0.1", "168.63.129.16", "nonsense"],
)  # fmt: skip
async def test_by_itself_it_takes_only_public_addresses_for_such(address: str) -> None:
    async def look(_host: str, _port: int) -> list[str]:
        return [address]

    proxy = Proxy(look)
    await proxy.serve(socket.create_server(("127.0.0.1", 0)))
    answer = await said(
        proxy, proxy.open(Gateway(frozenset({EVERY_HOST}))), "CONNECT name.org:80 HTTP/1.1"
    )
    assert answer.startswith("HTTP/1.1 403")
    await proxy.aclose()


async def test_who_has_no_password_gets_nothing(proxy: Proxy, far: Far) -> None:
    gateway = Gateway(frozenset({EVERY_HOST}))
    address = proxy.open(gateway)
    assert (
        await said(proxy, "http://x:y@", f"GET http://example.org:{far.port}/ HTTP/1.1")
    ).startswith("HTTP/1.1 407")
    proxy.close(gateway)
    assert (await said(proxy, address, f"GET http://example.org:{far.port}/ HTTP/1.1")).startswith(
        "HTTP/1.1 407"
    )
    assert far.seen == []


@pytest.mark.parametrize(
    "line", ["GET / HTTP/1.1", "GET ftp://a/ HTTP/1.1", "nonsense", "CONNECT :80 HTTP/1.1"]
)
async def test_what_is_no_request_of_a_proxy_ends_the_connection(proxy: Proxy, line: str) -> None:
    assert await said(proxy, proxy.open(Gateway(frozenset({EVERY_HOST}))), line) == ""


CONNECT = "python3 -c 'import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)' {host} {port}"
FETCH = "python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=9).read())' {url}"


@linux
async def test_nothing_of_the_network_is_there(box: Contained, far: Far) -> None:
    ran = await box.run(CONNECT.format(host="127.0.0.1", port=far.port))
    assert "Connection refused" in ran.output
    assert "unreachable" in (await box.run(CONNECT.format(host="192.0.2.1", port=80))).output
    assert far.seen == []


@linux
async def test_a_command_finds_the_proxy_and_the_model_is_told_of_a_refusal(box: Contained) -> None:
    ran = await box.run(FETCH.format(url="http://example.org/x"))
    assert "403" in ran.output
    assert ran.outcome.wanted == Grants(hosts=frozenset({"example.org"}))
    assert (
        "[The sandbox does not let this command reach example.org. Only the user can allow it.]"
        in ran.outcome.note
    )


@linux
async def test_the_user_is_asked_while_the_command_runs(box: Contained) -> None:
    asked = []

    async def allow(host: str, port: int) -> str:
        asked.append((host, port))
        return "Refused. The user says: use the mirror"

    ran = await box.run(FETCH.format(url="https://example.org/x"), allow_host=allow)
    assert asked == [("example.org", 443)]
    assert "the mirror" not in ran.output
    assert ran.outcome.note == "[Refused. The user says: use the mirror]"
    assert ran.outcome.wanted is None


@linux
@pytest.mark.parametrize("hides", ["{} | cat", "{}; true", "{} || true"])
async def test_a_line_that_hides_a_failure_is_asked_about_again_as_one_that_fails(
    box: Contained, hides: str
) -> None:
    async def allow(_host: str, _port: int) -> str:
        return await asyncio.Future[str]()

    # The client's own limit: it begins with the connection, not with the start of Python.
    fetch = FETCH.format(url="http://example.org/x").replace("timeout=9", "timeout=2")
    ran = await box.run(hides.format(fetch), allow_host=allow)
    assert ran.code == 0
    assert ran.outcome.wanted == Grants(hosts=frozenset({"example.org"}))


@linux
async def test_commands_of_a_session_reach_each_others_servers(box: Contained) -> None:
    box.file("page", "from the server")
    shell = shutil.which("bash") or "sh"
    serve = "exec python3 -u -m http.server --bind 127.0.0.1 8642"
    launch = await box.sandbox.launch(
        [shell, "-c", serve], box.root, box.root, View(), box.environment(), live=True
    )
    server = await asyncio.create_subprocess_exec(
        *launch.arguments, cwd=box.root, env=launch.environment, pass_fds=launch.descriptors,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    assert server.stdout is not None
    assert b"8642" in await server.stdout.readline()
    assert (
        "from the server" in (await box.run(FETCH.format(url="http://127.0.0.1:8642/page"))).output
    )
    server.kill()
    await server.communicate()
    await box.sandbox.finish(launch, "", None)


SERVER = "exec python3 -u -m http.server --bind {address} {port}"


def page(port: int) -> str:
    """Fetch a page from this machine, without a proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/page", timeout=20) as answer:
        return str(answer.read().decode())


@pytest.fixture
async def serving(box: Contained, request: pytest.FixtureRequest) -> AsyncIterator[Job]:
    """A job that serves the project in the sandbox, on port 8643 of an address."""
    box.file("page", "from the server")
    jobs = Jobs()
    space = Workspace(box.root, environ=box.environment())
    context = space.context()
    context.sandbox, context.jobs = box.sandbox, jobs
    command = SERVER.format(address=request.param, port=8643)
    await BashTool().run(BashInput(command=command, background=True), context)
    job = jobs.find(1)
    await eventually(lambda: box.sandbox.listening(job.state.pid) == {8643}, "it never listened")
    yield job
    await jobs.aclose()


@linux
@pytest.mark.parametrize("serving", ["127.0.0.1", "::1"], indirect=True)
async def test_this_machine_reaches_a_server_once_its_port_is_opened(
    box: Contained, serving: Job
) -> None:
    assert not box.sandbox.opened_ports
    port = await box.sandbox.open_port(8643)
    assert await box.sandbox.open_port(8643) == port
    assert box.sandbox.opened_ports == {8643: port}
    for _ in range(3):
        assert await asyncio.to_thread(page, port) == "from the server"
    await serving.stop()
    with pytest.raises(OSError, match=r"closed|reset|refused"):
        await asyncio.to_thread(page, port)
    await box.sandbox.close_port(8643)
    assert not box.sandbox.opened_ports


@linux
@pytest.mark.parametrize("serving", ["127.0.0.1"], indirect=True)
async def test_a_port_in_use_here_is_opened_as_another_one(box: Contained, serving: Job) -> None:
    with socket.create_server(("127.0.0.1", 8643)):
        port = await box.sandbox.open_port(8643)
        assert port != 8643
        assert await asyncio.to_thread(page, port) == "from the server"
    assert serving.state.running


@linux
@pytest.mark.parametrize("serving", ["127.0.0.1"], indirect=True)
async def test_only_this_machine_reaches_an_opened_port(box: Contained, serving: Job) -> None:
    port = await box.sandbox.open_port(8643)
    assert listening_ports(os.getpid()) >= {port}
    rows = Path("/proc/self/net/tcp").read_text().splitlines()
    (row,) = [row for row in rows if f":{port:04X} 00000000:0000 0A" in row]
    assert "0100007F:" in row, "127.0.0.1 only"
    assert serving.state.running


class _HereNetwork(SessionNetwork):
    """A network in which the helper's connections are made on this machine."""

    def joining(self) -> tuple[str, ...]:
        return ()


def here_ports() -> OpenPorts:
    return OpenPorts(_HereNetwork(Proxy(), asyncio.get_running_loop()))


async def said_through(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(30):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def server_saying(text: bytes, connected: asyncio.Event | None = None) -> asyncio.Server:
    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(text)
        writer.close()
        if connected is not None:
            connected.set()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


async def test_an_opened_port_works_again_after_its_helper_was_killed() -> None:
    ports = here_ports()
    async with await server_saying(b"hello") as server:
        port = await ports.open(server.sockets[0].getsockname()[1])
        assert await said_through(port) == b"hello"
        for child in psutil.Process().children():
            is_running = child.status() != psutil.STATUS_ZOMBIE
            if is_running and "socket.send_fds(control" in " ".join(child.cmdline()):
                child.kill()
                child.wait()
        assert await said_through(port) == b"hello"
        await ports.aclose()


async def test_a_port_that_is_opened_twice_at_once_has_one_listener() -> None:
    ports = here_ports()
    async with await server_saying(b"hello") as server:
        port = server.sockets[0].getsockname()[1]
        first, second = await asyncio.gather(ports.open(port), ports.open(port))
        assert first == second
        await ports.aclose()
        with pytest.raises(ConnectionRefusedError):
            await said_through(first)


async def test_a_late_connection_is_not_given_to_another_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_ports, "ANSWER_SECONDS", 0.001)
    ports = here_ports()
    connected = asyncio.Event()
    async with await server_saying(b"first", connected) as one, await server_saying(b"2") as two:
        first = await ports.open(one.sockets[0].getsockname()[1])
        second = await ports.open(two.sockets[0].getsockname()[1])
        assert await said_through(first) == b""
        monkeypatch.setattr(open_ports, "ANSWER_SECONDS", 30)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await connected.wait()
        assert await said_through(second) == b"2"
        await ports.aclose()

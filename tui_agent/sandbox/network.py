"""The network of a session's commands, which is separate and contains nothing but a proxy.

All commands of a session share the network, so that one can connect to a server that another has
started. A helper process creates the network, opens a listening socket in it, and passes the
descriptors of both to this program. The proxy serves connections to that socket from this program's
own network. It is the only way out of the sandbox, and it asks the user about every host. It
connects to addresses of this machine and of private networks only if the user's settings name them.
It connects to exactly the address that it checked.

Encrypted connections are passed on unchanged, except to the hosts of masked credentials. For these
the proxy acts as the server, decrypts the request, and inserts the values; such a connection
carries only one request.
"""

import asyncio
import base64
import binascii
import contextlib
import fcntl
import ipaddress
import logging
import os
import secrets
import socket
import ssl
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from urllib.parse import urlsplit

from tui_agent.lazy import dataclass
from tui_agent.processes.own_programs import find_program
from tui_agent.sandbox.authority import Authority
from tui_agent.sandbox.detection import SandboxState
from tui_agent.sandbox.hosts import PRIVATE, PrivateHosts, is_local_name
from tui_agent.sandbox.masks import Field, Masks, StreamRedactor, with_values
from tui_agent.sandbox.view import EVERY_HOST, AllowHost
from tui_agent.web.fetching import Resolve, system_resolve, system_tls
from tui_agent.word_lists import in_order, listed

log = logging.getLogger(__name__)

START_SECONDS = 10
HEAD_SECONDS = 30
"""Maximum number of seconds in which a client has to send its request line and header fields."""

CONNECT_SECONDS = 30
SETTLE_SECONDS = 2
"""Maximum number of seconds that `Gateway.settled` waits."""
_MAX_HEAD = 64 * 1024
_CHUNK = 64 * 1024

_OWNER_OF_NETWORK = 0xB701
"""``NS_GET_USERNS`` of ioctl_ns(2): returns the user namespace that owns a network namespace."""

_HELPER = """
import socket
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen(256)
network = open("/proc/self/ns/net")
socket.send_fds(socket.socket(fileno=0), [b"x"], [server.fileno(), network.fileno()])
"""

_OWN_FIELDS = listed("proxy-authorization proxy-connection connection keep-alive")

_FIRST_OF_TLS = b"\x16"
"""The first byte of a TLS handshake (RFC 8446, section 5.1)."""

_NO_MASKS = Masks({}, {}, Path())

_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_UNTRUSTING = (
    "A program does not trust the sandbox's certificate for {host}, so a masked credential can't be sent there. Make "
    "the program trust the certificates in the file that SSL_CERT_FILE names."
)

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Head = tuple[str, list[Field]]
"""The first line of an HTTP request, and the request's header fields."""
Change = Callable[[bytes], bytes]
"""Takes a piece of a stream (b"" at its end) and returns what to pass on."""


_REFUSED = "The sandbox does not let this command reach {host}. Only the user can allow it."
_UNANSWERED = "The command ended before the user had answered whether it may reach {host}."
"""The reason recorded for a host whose question was open when the command ended.

Such hosts are in `Gateway.unanswered`.
"""


@dataclass
class Gateway:
    """Decides which hosts a command may reach, and records the hosts that were refused.

    ``hosts`` may be reached without asking the user. ``allow_host`` asks about other hosts; if it
    is None, they are refused. ``refused`` maps refused hosts to the reason; ``closed`` are the
    refused hosts about which the user is not asked again.
    """

    hosts: frozenset[str] = frozenset()
    allow_host: AllowHost | None = None
    refused: dict[str, str] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    _answers: dict[str, asyncio.Future[str | None]] = field(default_factory=dict)
    _handshakes: set[asyncio.Future[None]] = field(default_factory=set)

    @contextlib.contextmanager
    def handshake(self) -> Iterator[None]:
        """Register a TLS handshake of the command for as long as the block runs; see `settled`."""
        ended = asyncio.get_running_loop().create_future()
        self._handshakes.add(ended)
        try:
            yield
        finally:
            self._handshakes.discard(ended)
            ended.set_result(None)

    async def settled(self) -> None:
        """Wait until the running handshakes have ended, but at most `SETTLE_SECONDS`.

        Call it after the command's end. A program that refuses a certificate may end before the
        refusal is recorded.
        """
        if self._handshakes:
            await asyncio.wait(self._handshakes, timeout=SETTLE_SECONDS)

    async def ask_to_reach(self, host: str, port: int) -> None:
        """Raise RefusedError unless the command is allowed to reach a host.

        Asks the user if necessary, at most once for each host. Raises NotedRefusalError if the user
        refused with a note. A question withdrawn by `end` counts as a refusal.
        """
        if EVERY_HOST in self.hosts or host in self.hosts:
            return
        refusal = await self._answer_about(host, port)
        if refusal:
            raise NotedRefusalError(host, refusal)
        if refusal is not None:
            raise RefusedError(_REFUSED.format(host=host))

    async def _answer_about(self, host: str, port: int) -> str | None:
        """Call ``allow_host`` to ask the user about a host, and return its result.

        Returns "" if ``allow_host`` is None or the question was withdrawn.
        """
        if self.allow_host is None:
            return ""
        answer = self._answers.get(host)
        if answer is None:
            answer = self._answers[host] = asyncio.ensure_future(self.allow_host(host, port))
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            if answer.cancelled():
                return ""
            raise

    @property
    def unanswered(self) -> frozenset[str]:
        """The hosts whose questions were still open when the command ended."""
        return frozenset(
            host for host, why in self.refused.items() if why == _UNANSWERED.format(host=host)
        )

    def refuse(self, host: str, why: str, *, closed: bool = False) -> None:
        """Record why a host was refused; with ``closed``, the user is not asked about it again.

        If a reason is recorded for the host already, it stays.
        """
        self.refused.setdefault(host, why)
        if closed:
            self.closed.add(host)

    def end(self) -> None:
        """Withdraw open questions and refuse their hosts, because the command has ended."""
        for host, answer in self._answers.items():
            if not answer.done():
                self.refuse(host, _UNANSWERED.format(host=host))
                answer.cancel()


class RefusedError(Exception):
    """Raised if a connection is refused; the message says why.

    ``refusal`` is a text for the model; "" if there is none.
    """

    refusal = ""


class NotedRefusalError(RefusedError):
    """Raised if the user refused a connection and wrote a note, which only ``refusal`` contains."""

    def __init__(self, host: str, refusal: str) -> None:
        super().__init__(_REFUSED.format(host=host))
        self.refusal = refusal


class PrivateHostError(RefusedError):
    """Raised if a connection to this machine or to a private network is refused.

    Only a setting can allow such a connection.
    """

    def __init__(self, host: str) -> None:
        super().__init__(PRIVATE.format(host=host))


class Proxy:
    """An HTTP proxy (``CONNECT`` and plain requests) that tells commands apart by their passwords.

    `serve` starts it, `open` registers a command, `close` unregisters it, and `aclose` stops the
    proxy.
    """

    def __init__(
        self,
        resolve: Resolve = system_resolve,
        private: PrivateHosts | None = None,
        reaches: Callable[[str], bool] = lambda _address: False,
        masks: Masks = _NO_MASKS,
        authority: Authority | None = None,
        tls: Callable[[], ssl.SSLContext] = system_tls,
    ) -> None:
        """Create a proxy that connects to public hosts, and to the private hosts in ``private``.

        ``resolve`` resolves names. ``reaches`` returns True for further allowed IP addresses. For
        hosts of ``masks``, the proxy presents a certificate issued by ``authority`` to the command,
        and checks the host's own certificate with the context that ``tls`` returns.
        """
        self._authority = authority or Authority()
        self._masks = masks
        self._tls = tls
        self._resolve = resolve
        self._private = private or PrivateHosts()
        self._reaches = reaches
        self._gateways: dict[str, Gateway] = {}
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.port = 0

    async def serve(self, listener: socket.socket) -> None:
        listener.settimeout(0)
        self.port = listener.getsockname()[1]
        self._server = await asyncio.start_server(self._serve, sock=listener, limit=_MAX_HEAD)

    def open(self, gateway: Gateway) -> str:
        """Let a command use the proxy; returns the proxy's URL with the command's password."""
        password = secrets.token_hex(16)
        self._gateways[password] = gateway
        return f"http://command:{password}@127.0.0.1:{self.port}"

    def close(self, gateway: Gateway) -> None:
        """Refuse further connections of a command, and withdraw its open questions to the user."""
        gateway.end()
        self._gateways = {
            password: known for password, known in self._gateways.items() if known is not gateway
        }

    async def aclose(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._answer(reader, writer))
        self._connections.add(task)
        try:
            await asyncio.wait([task])
        finally:
            self._connections.discard(task)
            writer.close()
        # A client that has disconnected, or doesn't speak HTTP, can't be answered.
        if not task.cancelled() and (error := task.exception()) is not None:
            log.debug("a connection to the proxy ended: %r", error)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        first, fields = _parsed(head)
        method, target, _version = first.split(" ", 2)
        gateway = self._gateways.get(_password(fields))
        if gateway is None:
            await _respond(
                writer,
                "407 Proxy Authentication Required",
                "Connect to the proxy that HTTP_PROXY names.",
            )
            return
        host, port, path = _target(method, target)
        try:
            address = await self._address(gateway, host, port)
            async with asyncio.timeout(CONNECT_SECONDS):
                far = await asyncio.open_connection(address, port)
        except RefusedError as error:
            is_final = isinstance(error, PrivateHostError | NotedRefusalError)
            gateway.refuse(host, error.refusal or str(error), closed=is_final)
            await _respond(writer, "403 Forbidden", str(error))
            return
        except (OSError, UnicodeError) as error:
            # For malformed host names, the resolver raises either error.
            await _respond(writer, "502 Bad Gateway", f"{host} could not be reached ({error}).")
            return
        near = (reader, writer)
        try:
            if method != "CONNECT":
                await self._request(near, far, host, (f"{method} {path} HTTP/1.1", fields))
            elif self._masks.intercepts(host):
                await self._intercept(near, far, host, gateway)
            else:
                writer.write(_ESTABLISHED)
                await pass_both_ways(near, far)
        finally:
            far[1].close()

    async def _request(
        self, near: Stream, far: Stream, host: str, head: Head, *, encrypted: bool = False
    ) -> None:
        """Forward the only request of a connection, and pass the answer back.

        Masked values for the host are inserted into the request's header fields, and replaced by
        their placeholders in the answer.
        """
        first, fields = head
        kept = [field for field in fields if field[0].lower() not in _OWN_FIELDS]
        masks = self._masks.for_host(host, encrypted=encrypted)
        sent, hidden = with_values(kept, masks)
        lines = [first, *("".join(field) for field in sent), "Connection: close"]
        far[1].write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        await pass_both_ways(near, far, StreamRedactor(hidden).feed if hidden else None)

    async def _intercept(self, near: Stream, far: Stream, host: str, gateway: Gateway) -> None:
        """Handle a tunnel to a host with a masked credential. The tunnel carries a single request.

        If the command starts a TLS handshake, the proxy terminates TLS with its own certificate for
        that host.
        """
        reader, writer = near
        with gateway.handshake():
            first = await _first_byte(writer)
            encrypted = first == _FIRST_OF_TLS
            if encrypted:
                await self._encrypt(near, far, host, gateway)
        if not encrypted:
            writer.transport.resume_reading()  # type: ignore[attr-defined]
        async with asyncio.timeout(HEAD_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        await self._request(near, far, host, _parsed(head), encrypted=encrypted)

    async def _encrypt(self, near: Stream, far: Stream, host: str, gateway: Gateway) -> None:
        """Start TLS on both sides: towards the command, acting as the host, and towards the host.

        Raises:
            OSError: the command doesn't trust the proxy's certificate (``gateway`` records that),
                or the host has no trusted certificate (the command is sent status 502).
        """
        context = await asyncio.to_thread(self._authority.context, host)
        trusted = await asyncio.to_thread(self._tls)
        try:
            await near[1].start_tls(context)
        except OSError as error:
            gateway.refuse(host, _UNTRUSTING.format(host=host), closed=True)
            raise error from None
        try:
            await far[1].start_tls(trusted, server_hostname=host)
        except OSError as error:
            await _respond(
                near[1], "502 Bad Gateway", f"{host} has no trusted certificate ({error})."
            )
            raise

    async def _address(self, gateway: Gateway, host: str, port: int) -> str:
        """Return the IP address at which to reach a host, after asking the user if necessary.

        IP addresses, and names of this machine and the local network, are checked first: those that
        only a setting can allow are refused without asking the user. Other names are looked up only
        after the user has allowed them, because a look-up already sends data to a server.

        Raises:
            RefusedError: the command isn't allowed to reach the host.
            OSError: the host has no address.
        """
        is_named = self._private.names(host)
        found = None
        if _is_literal(host):
            found = self._first_allowed([host], host)
        elif not is_named and (host == "localhost" or host.endswith(".localhost")):
            raise PrivateHostError(host)
        elif not is_named and is_local_name(host):
            found = self._first_allowed(await self._resolve(host, port), host)
        if not is_named:
            await gateway.ask_to_reach(host, port)
        return found or self._first_allowed(await self._resolve(host, port), host)

    def _first_allowed(self, addresses: Sequence[str], host: str) -> str:
        """Return the first of the IP addresses of a host.

        Raises PrivateHostError if the host has no address, or if any of its addresses is not
        allowed.
        """
        if not addresses or not all(
            self._reaches(one) or self._private.reaches(one, host) for one in addresses
        ):
            raise PrivateHostError(host)
        return addresses[0]


def _parsed(head: bytes) -> Head:
    first, *rows = head.decode("latin-1").split("\r\n")
    return first, [row.partition(":") for row in rows if row]


async def _first_byte(writer: asyncio.StreamWriter) -> bytes:
    """Tell a client that its tunnel is open, and return the first byte that it sends.

    The byte stays in the stream. Reading stays paused: the caller resumes it or starts TLS. Raises
    TimeoutError after `HEAD_SECONDS`.
    """
    transport = writer.transport
    transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(_ESTABLISHED)
    loop = asyncio.get_running_loop()
    waiting = asyncio.Event()
    # Watch a duplicate, because asyncio refuses to watch a descriptor that a transport uses.
    with socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno())) as same:
        loop.add_reader(same, waiting.set)
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                await waiting.wait()
        finally:
            loop.remove_reader(same)
        return same.recv(1, socket.MSG_PEEK)


def _password(fields: list[Field]) -> str:
    for name, _, value in fields:
        if name.lower() == "proxy-authorization":
            with contextlib.suppress(binascii.Error, ValueError):
                return base64.b64decode(value.strip().partition(" ")[2]).decode().partition(":")[2]
    return ""


def _target(method: str, target: str) -> tuple[str, int, str]:
    """Return the host, the port, and the path with its query, from a request's target.

    Raises ValueError if the host is missing or not ASCII, or the scheme isn't http.
    """
    parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
    if method != "CONNECT" and parts.scheme != "http":
        raise ValueError(target)
    host = (parts.hostname or "").rstrip(".")
    if not host or not host.isascii():
        raise ValueError(target)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return host, parts.port or (443 if method == "CONNECT" else 80), path


def _is_literal(host: str) -> bool:
    """Return True if a host is an IP address in the usual form.

    False for forms that only inet_aton accepts (127.1, 0x7f000001); they are looked up as names.
    """
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return False


async def _respond(writer: asyncio.StreamWriter, status: str, text: str) -> None:
    body = f"{text}\n".encode()
    more = ""
    if status.startswith("407"):
        more = "Proxy-Authenticate: Basic\r\n"
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n{more}Connection: close"
    writer.write(f"{head}\r\n\r\n".encode() + body)
    await writer.drain()


async def pass_both_ways(near: Stream, far: Stream, change: Change | None = None) -> None:
    """Pass bytes on in both directions until the server, ``far``, ends the connection.

    ``change`` alters the bytes that come from the server.
    """
    sending = asyncio.ensure_future(_pass_on(near[0], far[1]))
    try:
        # After the answer's end, the rest of the request doesn't matter.
        await _pass_on(far[0], near[1], change)
    finally:
        sending.cancel()
        await asyncio.wait([sending])


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, change: Change | None = None
) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk if change is None else change(chunk))
            await writer.drain()
        if change is not None:
            writer.write(change(b""))
        if writer.can_write_eof():
            writer.write_eof()
        else:
            writer.close()


@dataclass
class SessionNetwork:
    """A session's proxy, and the descriptors of the network that the session's commands share.

    If ``listener`` is None, there is no such network: commands reach the proxy at its port on this
    machine, or have no network if the port is 0. ``loop`` is the event loop that serves the proxy.
    """

    proxy: Proxy
    loop: asyncio.AbstractEventLoop
    listener: socket.socket | None = None
    network: int = -1
    users: int = -1
    """Descriptor of the network's user namespace; -1 if that is this program's own namespace."""
    program: str = ""
    """The path of the program ``nsenter``, which starts a command in another network."""

    def joining(self) -> tuple[str, ...]:
        """Return the nsenter command line to put before a command, so that it joins this network.

        Only for a network with a ``listener``.
        """
        ours = f"/proc/{os.getpid()}/fd"
        users = (f"--user={ours}/{self.users}", "--preserve-credentials") if self.users >= 0 else ()
        return (self.program, *users, f"--net={ours}/{self.network}", "--")

    def close(self) -> None:
        """Close this program's descriptors. The network exists until its last command has ended."""
        if self.listener is not None:
            self.listener.close()
        for descriptor in (self.network, self.users):
            if descriptor >= 0:
                os.close(descriptor)


async def make_network(state: SandboxState, proxy: Proxy, outside: Path | None) -> SessionNetwork:
    """Create a session's network, and start to serve the proxy in it.

    For sandbox-exec no network is created; the proxy listens on a port of this machine instead. If
    the network can't be made, the result has no listener and the proxy's port stays 0. Programs in
    the project ``outside`` are not used.
    """
    made = SessionNetwork(proxy, asyncio.get_running_loop())
    if state.kind == "sandbox-exec":
        await made.proxy.serve(socket.create_server(("127.0.0.1", 0), backlog=256))
        return made
    form = state.bubblewrap
    program = find_program("nsenter", outside)
    if program is None:
        return made
    users = ("--unshare-user",) if form.users else ()
    here, there = socket.socketpair()
    here.settimeout(START_SECONDS)
    try:
        with here, there:
            process = await asyncio.create_subprocess_exec(
                form.program,
                *users,
                *in_order("--unshare-net --die-with-parent --dev-bind / / --"),
                *(sys.executable, "-I", "-S", "-c", _HELPER),
                stdin=there.fileno(),
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            there.close()
            try:
                _data, found, _flags, _address = await asyncio.to_thread(
                    socket.recv_fds, here, 1, 2
                )
            finally:
                await process.wait()
    except OSError:
        return made
    if len(found) != 2:
        return made
    made.program, made.listener, made.network = program, socket.socket(fileno=found[0]), found[1]
    if form.users:
        made.users = fcntl.ioctl(made.network, _OWNER_OF_NETWORK)
    await made.proxy.serve(made.listener)
    return made


def proxy_environment(address: str) -> Mapping[str, str]:
    """Return the variables that make programs use the proxy at the URL ``address``.

    Connections to localhost don't use it.
    """
    here = "localhost,127.0.0.1,::1"
    names = in_order("HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy")
    return dict.fromkeys(names, address) | {
        "NO_PROXY": here,
        "no_proxy": here,
        "NODE_USE_ENV_PROXY": "1",
    }

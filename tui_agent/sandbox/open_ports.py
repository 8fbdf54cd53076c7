"""Lets programs on this machine reach servers that a session's commands run in their own network.

A server in the sandbox listens on a port of that network, which the user's browser can't reach. For
a port that the user opens, this program listens on 127.0.0.1 outside and passes each connection on.
A helper process in the commands' network makes the connections there, because a socket belongs to
the network in which it was made. Other machines can't reach such a port.
"""

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tui_agent.sandbox.network import SessionNetwork, pass_both_ways

PROC = Path("/proc")

ANSWER_SECONDS = 5
"""Maximum number of seconds for the helper process to start or to connect to a server."""

_LISTENING = "0A"
"""State of a listening socket in ``/proc/PID/net/tcp``; see proc_pid_net(5)."""
_MAX_MESSAGE = 16

_HELPER = """
import socket
control = socket.socket(fileno=0)
while asked := control.recv(16):
    for address in ("127.0.0.1", "::1"):
        try:
            made = socket.create_connection((address, int(asked)), timeout=4)
        except OSError:
            continue
        made.setblocking(False)
        socket.send_fds(control, [b"+"], [made.fileno()])
        made.close()
        break
    else:
        control.send(b"-")
"""
"""The Python program that the helper process runs.

It reads port numbers. It answers each number with a connection to that port, or with "-" if nothing
listens on the port.
"""


def listening_ports(pid: int) -> frozenset[int]:
    """Return the TCP ports on which programs listen in the network of a process.

    Empty if the process has ended, and on systems without ``/proc``.
    """
    found = set[int]()
    for name in ("tcp", "tcp6"):
        try:
            rows = (PROC / str(pid) / "net" / name).read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        for row in rows[1:]:
            _number, local, _remote, state, *_rest = row.split()
            if state == _LISTENING:
                found.add(int(local.rpartition(":")[2], base=16))
    return frozenset(found)


class OpenPorts:
    """The ports in a session's network that the user has opened to this machine."""

    def __init__(self, network: SessionNetwork) -> None:
        self._network = network
        self._opening = asyncio.Lock()
        """Locked while a port is opened, so that two calls don't open the same port."""
        self._lock = asyncio.Lock()
        """Locked while the helper process makes a connection."""
        self._servers: dict[int, asyncio.Server] = {}
        self._helper: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def opened(self) -> Mapping[int, int]:
        """The opened ports, each with the port of 127.0.0.1 that leads to it."""
        return {port: server.sockets[0].getsockname()[1] for port, server in self._servers.items()}

    async def open(self, port: int) -> int:
        """Open a port, and return the port on 127.0.0.1 that leads to it.

        The two ports have the same number if this program can also listen on it outside. A port
        that is open already stays open.

        Raises:
            OSError: this machine has no free port.
        """
        if port in self._servers:
            return self.opened[port]

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._pass_on(port, reader, writer))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
            await asyncio.wait([task])

        async with self._opening:
            if port not in self._servers:
                try:
                    server = await asyncio.start_server(serve, "127.0.0.1", port)
                except OSError:
                    server = await asyncio.start_server(serve, "127.0.0.1", 0)
                self._servers[port] = server
            return self.opened[port]

    async def close(self, port: int) -> None:
        """Close an opened port. Its existing connections continue."""
        server = self._servers.pop(port)
        server.close()

    async def aclose(self) -> None:
        """Close all ports and connections, and end the helper process."""
        async with self._opening:
            for port in list(self._servers):
                await self.close(port)
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await asyncio.to_thread(self._end_helper)

    async def _pass_on(
        self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            async with self._lock:
                inner = await asyncio.to_thread(self._connect, port)
            far = await asyncio.open_connection(sock=inner)
            try:
                await pass_both_ways((reader, writer), far)
            finally:
                far[1].close()
        except OSError:
            # Nothing listens on the port in the sandbox. Close the connection to tell the client.
            return
        finally:
            writer.close()

    def _connect(self, port: int) -> socket.socket:
        """Return a connection to a port in the commands' network. Blocks.

        Raises:
            OSError: nothing listens on the port, or the helper can't be started.
        """
        control = self._helper_socket()
        try:
            control.send(str(port).encode())
            answer, sockets, _flags, _address = socket.recv_fds(control, _MAX_MESSAGE, 1)
        except OSError:
            # A late answer must not be taken for the answer to the next request, for another port.
            self._end_helper()
            raise
        if not sockets:
            if not answer:
                self._end_helper()
            raise ConnectionRefusedError(f"nothing listens on port {port}")
        return socket.socket(fileno=sockets[0])

    def _end_helper(self) -> None:
        """End the helper process, if there is one; the next connection starts another."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._helper is not None:
            self._helper.kill()
            self._helper.wait()
            self._helper = None

    def _helper_socket(self) -> socket.socket:
        """Return the socket to the helper process, which is started if it isn't running."""
        if self._helper is not None and self._helper.poll() is not None:
            self._end_helper()
        if self._control is None:
            here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            here.settimeout(ANSWER_SECONDS)
            with there, contextlib.ExitStack() as undo:
                undo.callback(here.close)
                self._helper = subprocess.Popen(
                    [*self._network.joining(), sys.executable, "-I", "-S", "-c", _HELPER],
                    stdin=there.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                undo.pop_all()
            self._control = here
        return self._control

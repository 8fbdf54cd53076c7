"""The process of a detached run: runs the program on a pseudo-terminal.

The process serves the terminals that attach to the run. It outlives the terminal from which it was
started. A slow or lost terminal affects neither the program nor the other terminals.
"""

import contextlib
import fcntl
import json
import os
import pty
import selectors
import signal
import socket
import struct
import sys
import termios
import time
from dataclasses import asdict
from typing import cast

from tui_agent.cli.detached.frames import (
    BadFrameError,
    FrameReader,
    Kind,
    frame,
    read_size,
)
from tui_agent.cli.detached.modes import TerminalModes
from tui_agent.cli.detached.runs import (
    DetachedState,
    Run,
    forget,
    keep,
    runs_dir,
    session_of,
)
from tui_agent.isolation import DETACHED_NAME_VARIABLE, isolated_module

FIRST_SIZE = (120, 35)
"""Size of the pseudo-terminal (columns and rows) until the first terminal attaches."""
CHUNK = 65_536
"""Maximum number of bytes that are read or sent at a time."""
MAX_WAITING = 4 << 20
"""Maximum number of bytes of output that wait for a slow terminal.

A terminal with more waiting output is disconnected.
"""
STOP_PATIENCE = 10.0
"""Seconds between SIGTERM and SIGKILL when the program is stopped."""
CLEAR = b"\x1b[2J"
"""Escape sequence that clears a terminal, because the program may not draw on all of it."""


class Client:
    """A connection of a terminal or another process to the detached run.

    The connection counts as an attached terminal once its ``size`` (columns, rows) is known.
    ``waiting`` is output that has not been sent yet.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.reader = FrameReader()
        self.waiting = bytearray()
        self.size: tuple[int, int] | None = None

    def send(self, data: bytes) -> None:
        self.waiting += data


class Host:
    """The detached program, its pseudo-terminal, and all connections to the run."""

    def __init__(self, run: Run, terminal: int, child: int) -> None:
        self._run = run
        self._terminal = terminal
        self._child = child
        self._modes = TerminalModes()
        self._clients: dict[socket.socket, Client] = {}
        self._typed = bytearray()
        """Input from terminals that the program has not read yet."""
        self._selector = selectors.DefaultSelector()
        self._stop_by: float | None = None

    def serve(self, listener: socket.socket) -> int:
        """Relay input and output until the program ends, and return the program's exit code."""
        os.set_blocking(self._terminal, False)
        listener.setblocking(False)  # noqa: FBT003 - of the standard library
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(self._terminal, selectors.EVENT_READ)
        while self._look(listener):
            self._kill_if_late()
        return self._end()

    def stop(self) -> None:
        """Ask the program to save its session and end; kill it after `STOP_PATIENCE` seconds."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGTERM)
        self._stop_by = time.monotonic() + STOP_PATIENCE

    def _look(self, listener: socket.socket) -> bool:
        """Wait up to a second for input or output, and handle it.

        Returns False once the program has closed its terminal.
        """
        for key, ready in self._selector.select(timeout=1.0):
            if key.fileobj is listener:
                self._accept(listener)
            elif key.fileobj == self._terminal:
                if ready & selectors.EVENT_WRITE:
                    self._type()
                if ready & selectors.EVENT_READ and not self._pass_output():
                    return False
            elif (client := self._clients.get(cast("socket.socket", key.fileobj))) is not None:
                # The client may be missing, because an earlier event may have dropped it.
                self._serve_client(client, ready)
        return True

    def _kill_if_late(self) -> None:
        if self._stop_by is not None and time.monotonic() > self._stop_by:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)

    # -- the program

    def _pass_output(self) -> bool:
        try:
            data = os.read(self._terminal, CHUNK)
        except BlockingIOError:
            return True
        except OSError:  # the program has closed the terminal
            return False
        self._modes.feed(data)
        self._send_to_terminals(data)
        return bool(data)

    def _send_to_terminals(self, data: bytes) -> None:
        for client in list(self._clients.values()):
            if client.size is not None:
                self._send(client, frame(Kind.OUTPUT, data))

    def _type(self) -> None:
        """Send the program as much of the waiting input as it accepts now.

        The rest follows when the program reads more.
        """
        # Any error except a full buffer means that the program has ended; `_pass_output` notices.
        with contextlib.suppress(OSError):
            while self._typed:
                written = os.write(self._terminal, self._typed)
                del self._typed[:written]
        events = selectors.EVENT_READ
        if self._typed:
            events |= selectors.EVENT_WRITE
        self._selector.modify(self._terminal, events)

    def _fit(self, *, again: bool = False) -> None:
        """Make the pseudo-terminal fit into every attached terminal, and clear these terminals.

        Sets the pseudo-terminal to the smallest width and the smallest height of all terminals.
        With ``again``, the program redraws everything even if the size stays the same.
        """
        sizes = [client.size for client in self._clients.values() if client.size is not None]
        if not sizes:
            return
        columns = min(size[0] for size in sizes)
        rows = min(size[1] for size in sizes)
        self._send_to_terminals(CLEAR)
        if again:
            # A program redraws everything only if the size of its terminal changes.
            set_size(self._terminal, (columns, rows - 1))
        set_size(self._terminal, (columns, rows))

    # -- the connections

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _address = listener.accept()
        except OSError:
            return
        connection.setblocking(False)  # noqa: FBT003 - of the standard library
        self._clients[connection] = Client(connection)
        self._selector.register(connection, selectors.EVENT_READ)

    def _serve_client(self, client: Client, ready: int) -> None:
        try:
            if ready & selectors.EVENT_WRITE:
                self._flush(client)
            if ready & selectors.EVENT_READ:
                self._receive(client)
        except (BadFrameError, OSError):
            self._drop(client)

    def _receive(self, client: Client) -> None:
        data = client.connection.recv(CHUNK)
        if not data:
            self._drop(client)
            return
        for kind, payload in client.reader.feed(data):
            if client.connection not in self._clients:
                return
            match kind:
                case Kind.INPUT:
                    self._typed += payload
                    self._type()
                case Kind.SIZE:
                    self._resize(client, read_size(payload))
                case Kind.LEAVE:
                    self._detach_all()
                case Kind.ASK:
                    self._send(client, frame(Kind.ASK, self._state()))
                case Kind.STOP:
                    self.stop()
                case Kind.OUTPUT | Kind.END:
                    raise BadFrameError(f"only the run sends {kind.name}")

    def _resize(self, client: Client, size: tuple[int, int]) -> None:
        is_new = client.size is None
        client.size = size
        if is_new:
            self._send(client, frame(Kind.OUTPUT, self._modes.entering()))
        self._fit(again=is_new)

    def _detach_all(self) -> None:
        for client in list(self._clients.values()):
            if client.size is not None:
                self._send(client, frame(Kind.OUTPUT, self._modes.leaving()) + frame(Kind.LEAVE))

    def _state(self) -> bytes:
        attached = sum(client.size is not None for client in self._clients.values())
        state = DetachedState(
            title=self._modes.title,
            attached=attached,
            session=session_of(self._run.name),
        )
        return json.dumps(asdict(state)).encode()

    def _send(self, client: Client, data: bytes) -> None:
        client.send(data)
        try:
            self._flush(client)
        except OSError:
            self._drop(client)

    def _flush(self, client: Client) -> None:
        with contextlib.suppress(BlockingIOError):
            while client.waiting:
                sent = client.connection.send(client.waiting[:CHUNK])
                del client.waiting[:sent]
        if len(client.waiting) > MAX_WAITING:
            self._drop(client)
            return
        events = selectors.EVENT_READ
        if client.waiting:
            events |= selectors.EVENT_WRITE
        if client.connection in self._clients:
            self._selector.modify(client.connection, events)

    def _drop(self, client: Client) -> None:
        if self._clients.pop(client.connection, None) is None:
            return
        self._selector.unregister(client.connection)
        client.connection.close()
        self._fit()

    def _end(self) -> int:
        _pid, status = os.waitpid(self._child, 0)
        code = os.waitstatus_to_exitcode(status)
        for client in list(self._clients.values()):
            client.connection.setblocking(True)  # noqa: FBT003 - as above
            client.connection.settimeout(2.0)
            with contextlib.suppress(OSError):
                rest = bytes(client.waiting) + frame(Kind.END, str(code).encode())
                client.connection.sendall(rest)
            client.connection.close()
        return code


def set_size(terminal: int, size: tuple[int, int]) -> None:
    columns, rows = size
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def main(arguments: list[str]) -> int:
    """Run the program as a detached run until the program ends; return its exit code.

    ``arguments`` are the run's name, its prompt and the program's arguments. Prints the line
    ``ready`` once terminals can attach.
    """
    name, prompt, *given = arguments
    child, terminal = pty.fork()
    if child == 0:
        os.environ[DETACHED_NAME_VARIABLE] = name
        if os.environ.get("TERM", "dumb") in {"dumb", "unknown"}:
            os.environ["TERM"] = "xterm-256color"
        command = isolated_module("tui_agent", *given)
        os.execv(command[0], command)  # noqa: S606 - this interpreter
    set_size(terminal, FIRST_SIZE)
    run = Run(name=name, pid=os.getpid(), cwd=os.getcwd(), prompt=prompt, started=time.time())  # noqa: PTH109
    host = Host(run, terminal, child)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda _number, _frame: host.stop())
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    place = runs_dir() / f"{name}.sock"
    place.unlink(missing_ok=True)
    listener.bind(str(place))
    place.chmod(0o600)
    listener.listen()
    keep(run)
    print("ready", flush=True)
    _release_streams()
    try:
        return host.serve(listener)
    finally:
        forget(name)


def _release_streams() -> None:
    """Replace this process's standard input and output with the null device.

    The process that started this process then sees that both streams have ended.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nothing, stream)
    os.close(nothing)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

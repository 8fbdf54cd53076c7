"""Shows a detached run on this terminal, until the run ends or the terminal detaches."""

import contextlib
import os
import re
import selectors
import signal
import socket
import sys
import termios
import tty
from collections.abc import Iterator

from tui_agent.cli.detached.frames import (
    BadFrameError,
    FrameReader,
    Kind,
    frame,
    size_frame,
)
from tui_agent.cli.detached.modes import TerminalModes
from tui_agent.cli.detached.runs import DetachedError, Run, connect

_CHUNK = 65_536
_LEAVE_KEY = re.compile(rb"\x1c|\x1b\[92;5(?::1)?u")
"""Ctrl+backslash in both forms that terminals send; it detaches even if the program hangs."""


def attach(run: Run) -> int:
    """Pass keys and output between this terminal and a run until it ends or this terminal detaches.

    Returns the run's exit code, 0 after detaching, 1 if the run no longer exists.

    Raises:
        DetachedError: the standard streams are not a terminal, or the run doesn't answer.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise DetachedError("Attaching needs a terminal. Without one, use: tui-agent logs -f")
    with connect(run) as connection, _raw_terminal() as resized:
        return _Attached(run, connection, resized).pass_on()


class _Attached:
    """This terminal's connection to a detached run.

    The socket ``resized`` becomes readable when the terminal is resized.
    """

    def __init__(self, run: Run, connection: socket.socket, resized: socket.socket) -> None:
        self._run = run
        self._connection = connection
        self._resized = resized
        self._modes = TerminalModes()
        self._reader = FrameReader()
        self._code: int | None = None
        self._parting = ""
        """Sentence to print after the connection has ended; "" if there is nothing to say."""

    def pass_on(self) -> int:
        self._send_size()
        keys = sys.stdin.fileno()
        with selectors.DefaultSelector() as selector:
            for source in (keys, self._connection, self._resized):
                selector.register(source, selectors.EVENT_READ)
            while self._code is None:
                for key, _ready in selector.select():
                    if key.fileobj is self._resized:
                        self._resized.recv(_CHUNK)
                        self._send_size()
                    elif key.fileobj is self._connection:
                        self._take_output()
                    else:
                        self._send_keys(os.read(keys, _CHUNK))
        return self._end(self._code)

    def _end(self, code: int) -> int:
        _write(self._modes.leaving())
        if self._parting:
            _write(f"{self._parting}\r\n".encode())
        return code

    def _send_size(self) -> None:
        size = os.get_terminal_size(sys.stdout.fileno())
        # If the run has just ended, the next read from the connection notices that.
        with contextlib.suppress(OSError):
            self._connection.sendall(size_frame(size.columns, size.lines))

    def _send_keys(self, data: bytes) -> None:
        leaves = _LEAVE_KEY.search(data)
        if not data or leaves is not None:
            self._detach()
            return
        with contextlib.suppress(OSError):
            self._connection.sendall(frame(Kind.INPUT, data))

    def _take_output(self) -> None:
        try:
            data = self._connection.recv(_CHUNK)
            messages = list(self._reader.feed(data))
        except (OSError, BadFrameError):
            data = b""
            messages = []
        for kind, payload in messages:
            match kind:
                case Kind.OUTPUT:
                    self._modes.feed(payload)
                    _write(payload)
                case Kind.LEAVE:
                    self._detach()
                case Kind.END:
                    self._code = int(payload or b"1")
                case _:
                    pass
        if not data and self._code is None:
            self._parting = (
                f"The run {self._run.name} is gone. To continue its session: tui-agent -c"
            )
            self._code = 1

    def _detach(self) -> None:
        self._parting = f"Detached. To attach again: tui-agent attach {self._run.name}"
        self._code = 0


@contextlib.contextmanager
def _raw_terminal() -> Iterator[socket.socket]:
    """Put the terminal into raw mode while the block runs.

    Yields a socket that becomes readable when the terminal is resized.
    """
    keys = sys.stdin.fileno()
    before = termios.tcgetattr(keys)
    receiver, sender = socket.socketpair()
    sender.setblocking(False)  # noqa: FBT003 - of the standard library
    former = signal.signal(signal.SIGWINCH, lambda *_: _wake(sender))
    try:
        tty.setraw(keys)
        yield receiver
    finally:
        signal.signal(signal.SIGWINCH, former)
        termios.tcsetattr(keys, termios.TCSAFLUSH, before)
        receiver.close()
        sender.close()


def _wake(sender: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sender.send(b"w")


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(sys.stdout.fileno(), view) :]

"""Runs a program in a real pseudo-terminal and reads its screen the way a terminal shows it.

Nothing sleeps: every wait is for the terminal's file descriptor, bounded by a timeout, and a wait that fails shows
the screen. The terminal answers the questions that programs ask terminals (modes, device attributes, colours).
"""

import codecs
import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte

from tui_agent.processes.terminal_screen import TerminalScreen

TIMEOUT = 60.0
"""Seconds a wait may take; generous, because a loaded machine is slow and a passed wait costs nothing."""

KEYS = {
    "enter": "\r", "escape": "\x1b", "tab": "\t", "shift+tab": "\x1b[Z", "backspace": "\x7f", "space": " ",
    "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
    "pageup": "\x1b[5~", "pagedown": "\x1b[6~",
    "alt+enter": "\x1b\r", "alt+up": "\x1b[1;3A", "shift+enter": "\x1b[13;2u",
}  # fmt: skip
"""What a terminal sends for keys that are not a character."""

_SEQUENCE = re.compile(
    r"\x1b\[[<=>?]?[0-9;:]*[ -/]*[@-~]"  # control sequence
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # operating system command
    r"|\x1b[PX^_][^\x1b]*\x1b\\"  # strings
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"  # everything short
)
_UNKNOWN_TO_PYTE = re.compile(
    r"\x1b\[(?:[<=>][0-9;:]*[ -/]*[@-~]|\?[0-9;]*\$p)|\x1b[PX^_][^\x1b]*\x1b\\"
)
_REPLIES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\x1b\[\?2026\$p"), "\x1b[?2026;2$y"),
    (re.compile(r"\x1b\[\?2048\$p"), "\x1b[?2048;0$y"),
    (re.compile(r"\x1b\[c|\x1b\[0c"), "\x1b[?62;22c"),
    (re.compile(r"\x1b\[>0?c"), "\x1b[>1;10;0c"),
    (re.compile(r"\x1b\[6n"), "\x1b[1;1R"),
    (re.compile(r"\x1b\]10;\?(?:\x07|\x1b\\)"), "\x1b]10;rgb:eeee/eeee/eeee\x1b\\"),
    (re.compile(r"\x1b\]11;\?(?:\x07|\x1b\\)"), "\x1b]11;rgb:1111/1111/1111\x1b\\"),
)


class Terminal:
    """A program in a terminal of a given size.

    ``raw`` is everything the program wrote; ``size`` is columns and rows. Without ``echo`` the terminal itself
    shows no keys, so that a key on the screen is always the program's doing.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        size: tuple[int, int] = (80, 24),
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        echo: bool = True,
    ) -> None:
        columns, rows = size
        self._screen = TerminalScreen(columns, rows)
        self._stream = pyte.Stream(self._screen)
        self._undrawn: list[str] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._tail = ""
        self._eof = False
        self.raw = bytearray()
        master, slave = os.openpty()
        _set_size(slave, size)
        if not echo:
            attributes = termios.tcgetattr(slave)
            attributes[3] &= ~termios.ECHO
            termios.tcsetattr(slave, termios.TCSANOW, attributes)
        try:
            self.process = _spawn(
                [str(part) for part in command], slave, _environment(env or {}), cwd
            )
        finally:
            os.close(slave)
        self._fd = master
        os.set_blocking(master, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- reading --------------------------------------------------------------------------------------------

    @property
    def lines(self) -> list[str]:
        self._draw()
        return [line.rstrip() for line in self._screen.texts()]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def cursor(self) -> tuple[int, int]:
        """Column and row of the terminal's own cursor, shown or not."""
        self._draw()
        return self._screen.cursor.x, self._screen.cursor.y

    @property
    def title(self) -> str:
        self._draw()
        return str(self._screen.title)

    @property
    def modes(self) -> dict[int, bool]:
        """The private modes the program switched, as they are now (1049 alternate screen, 1000 mouse, ...)."""
        found = re.findall(rb"\x1b\[\?([0-9;]+)([hl])", bytes(self.raw))
        return {
            int(mode): state == b"h" for modes, state in found for mode in modes.split(b";") if mode
        }

    def pump(self, timeout: float = 0.0) -> bool:
        """Take in what the program writes, waiting at most ``timeout`` seconds for the first byte.

        Returns whether there was anything.
        """
        if self._eof:
            return False
        readable, _, _ = select.select([self._fd], [], [], max(0.0, timeout))
        if not readable:
            return False
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:  # Linux says EIO when the last process has closed the terminal
            data = b""
        if not data:
            self._eof = True
            return False
        self.raw += data
        self._undrawn.append(self._decoder.decode(data))
        for query, reply in _REPLIES if b"\x1b" in data else ():
            for _ in query.findall(self._undrawn[-1]):
                self.send(reply.encode())
        return True

    def wait_until(
        self, condition: Callable[[], bool], what: str, timeout: float = TIMEOUT
    ) -> None:
        """Read until a condition holds.

        Raises:
            AssertionError: it does not within ``timeout`` seconds, or the program ended before.
        """
        deadline = time.monotonic() + timeout
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError(
                    f"waited {timeout} s for {what}; the screen is\n{self.framed()}"
                )
            if not self.pump(min(left, 0.25)) and self._eof:
                if condition():
                    return
                raise AssertionError(
                    f"the program ended before {what}; the screen is\n{self.framed()}"
                )

    def wait_for(self, text: str, timeout: float = TIMEOUT) -> None:
        self.wait_until(lambda: text in self.text, f"“{text}”", timeout)

    def wait_for_any(self, *texts: str, timeout: float = TIMEOUT) -> str:
        self.wait_until(
            lambda: any(text in self.text for text in texts), f"one of {texts}", timeout
        )
        return next(text for text in texts if text in self.text)

    def wait_gone(self, text: str, timeout: float = TIMEOUT) -> None:
        self.wait_until(lambda: text not in self.text, f"“{text}” to go", timeout)

    def wait_quiet(self, seconds: float = 0.3, timeout: float = TIMEOUT) -> None:
        deadline = time.monotonic() + timeout
        while self.pump(seconds):
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"still writing after {timeout} s; the screen is\n{self.framed()}"
                )

    def read_for(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and not self._eof:
            self.pump(left)

    def framed(self) -> str:
        """Return the screen with a frame around it, for messages."""
        width = self._screen.columns
        bar = "+" + "-" * width + "+"
        return "\n".join([bar, *(f"|{line}" for line in self.lines), bar])

    # -- writing --------------------------------------------------------------------------------------------

    def type(self, text: str) -> None:
        self.send(text.encode())

    def press(self, *keys: str) -> None:
        """Send keys by name: ``enter``, ``ctrl+g``, ``alt+up``, ``y``."""
        for key in keys:
            self.send(_key(key).encode())

    def paste(self, text: str) -> None:
        self.send(f"\x1b[200~{text}\x1b[201~".encode())

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the terminal; the program gets its signal from the kernel."""
        self._draw()
        self._screen.resize(rows, columns)
        _set_size(self._fd, (columns, rows))

    # -- ending ---------------------------------------------------------------------------------------------

    def hang_up(self) -> None:
        """Close the terminal as closing its window does: the kernel tells the program, and nobody reads any more."""
        os.close(self._fd)
        self._fd = -1
        self._eof = True

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(TIMEOUT)

    def wait_exit(self, timeout: float = TIMEOUT) -> int:
        """Read until the program ends and return its exit code.

        Raises:
            AssertionError: it does not within ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"still running after {timeout} s; the screen is\n{self.framed()}"
                )
            if not self.pump(0.05) and self._eof:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(max(0.01, deadline - time.monotonic()))
        while self.pump():
            pass
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    # -- inside ---------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        deadline = time.monotonic() + TIMEOUT
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except (
                BlockingIOError
            ):  # the program is behind; what it writes meanwhile must not block it either
                if time.monotonic() > deadline:
                    raise AssertionError(
                        f"the program reads no input; the screen is\n{self.framed()}"
                    ) from None
                self.pump(0.01)

    def scribble(self, text: str) -> None:
        """Write to the terminal's screen, as another program could; the program isn't told."""
        self._draw()
        self._stream.feed(text)

    def _draw(self) -> None:
        """Feed what was read to the screen, holding back a sequence that is not whole yet."""
        if not self._undrawn:
            return
        text = self._tail + "".join(self._undrawn)
        self._undrawn.clear()
        self._tail = ""
        start = text.rfind("\x1b")
        if start >= 0 and _SEQUENCE.match(text, start) is None:
            text, self._tail = text[:start], text[start:]
        self._stream.feed(_UNKNOWN_TO_PYTE.sub("", text))


def ask(terminal: Terminal, text: str) -> None:
    terminal.type(text)
    terminal.wait_for(text)
    terminal.press("enter")


def _key(name: str) -> str:
    if name in KEYS:
        return KEYS[name]
    if name.startswith("ctrl+") and len(name) == 6:
        return chr(ord(name[-1]) & 0x1F)
    if name.startswith("alt+") and len(name) == 5:
        return f"\x1b{name[-1]}"
    if len(name) == 1:
        return name
    raise ValueError(f"no such key: {name}")


def _set_size(fd: int, size: tuple[int, int]) -> None:
    columns, rows = size
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _environment(changes: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a plain modern terminal, whatever the tests themselves run in."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in {"PATH", "HOME", "TMPDIR", "VIRTUAL_ENV"}
    }
    terminal = {
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
    }
    return {**kept, **terminal, **changes}


def _spawn(
    command: list[str], slave: int, env: dict[str, str], cwd: Path | None
) -> "subprocess.Popen[bytes]":
    """Start a process whose controlling terminal is ``slave``, so that it gets SIGWINCH and job control."""
    with warnings.catch_warnings():
        # Forking beside other threads is safe here: the child only makes one system call before it executes.
        warnings.simplefilter("ignore", DeprecationWarning)
        return subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - see above
        )

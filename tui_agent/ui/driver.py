"""A terminal driver for Textual that survives invalid input, suspension and losing the terminal.

While the screen is drawn, the process's standard output and standard error go to a log file. The
driver hands the first frame to `early_prompt`, which saves the frame's prompt line for the next
start.
"""

import asyncio
import os
import selectors
import shutil
import signal
import sys
import termios
import threading
from codecs import getincrementaldecoder
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

from textual._parser import ParseError
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from tui_agent.paths import log_dir
from tui_agent.ui.early_prompt import ALTERNATE_SCREEN, ESCAPE_KEY, LONE_ESCAPE, early_prompt
from tui_agent.ui.terminal_input import InputParser

if TYPE_CHECKING:
    from io import TextIOWrapper

    from textual.app import App

STRAY_OUTPUT = "stray-output.log"
"""Name of the log file for what libraries print to the terminal while the interface is drawn."""
_MAX_STRAY_BYTES = 1_000_000
"""Maximum size of the file `STRAY_OUTPUT`, in bytes. If it is larger when the interface starts, it
is emptied."""
_READ_BYTES = 4096
_ESCAPE_TIMEOUT_SECONDS = 0.1
"""Seconds for which the input thread waits for input. After that, it checks whether an unfinished
key sequence has timed out and whether the program has ended."""
_DISTINCT_KEYS = "\x1b[>4;2m"
"""Escape sequence that makes tmux send Shift+Enter as another key than Enter, if tmux's option
``extended-keys`` is on (xterm's modifyOtherKeys)."""
_PLAIN_KEYS = "\x1b[>4m"


class TerminalGone(Message):
    """Posted when the terminal has disappeared: output is lost, and no more keys will come."""


class TerminalDriver(LinuxDriver):
    """Terminal driver that replaces invalid UTF-8, and notices if the terminal is gone.

    It then posts `TerminalGone`. Until the first frame is painted, it keeps the early prompt on the
    screen and buffers the keys.
    """

    def __init__(
        self,
        app: "App[Any]",
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        # Textual draws on standard error, which may be closed or redirected, so find a stream that
        # is a terminal.
        drawn_on = None
        for stream in (sys.__stderr__, sys.__stdout__):
            if stream and stream.isatty():
                drawn_on = stream
                break
        self._stray_output = _StrayOutput()
        self._terminal: int | None = None
        if drawn_on is not None:
            # The driver needs its own descriptor, because 1 and 2 lead to the log file while the
            # screen is drawn.
            own = os.fdopen(
                os.dup(drawn_on.fileno()), "w", encoding=drawn_on.encoding, errors="replace"
            )
            self._terminal = own.fileno()
            self._file = cast("TextIOWrapper", _Output(own, self._lost))

        self._continued = False
        self._loop = asyncio.get_running_loop()
        self._typed = b""
        self._has_screen = False
        self._first_frame: str | None = ""
        self._is_painted = threading.Event()

    def _lost(self) -> None:
        self.send_message(TerminalGone())

    # -- from the early prompt to the interface

    def start_application_mode(self) -> None:
        self._has_screen = early_prompt.is_shown
        self._typed = early_prompt.take()
        super().start_application_mode()  # type: ignore[no-untyped-call]
        # Undo a Ctrl+S that was typed before in another program: it has stopped the terminal's
        # output, and no key of this program would restart it.
        with suppress(termios.error):
            termios.tcflow(self.fileno, termios.TCOON)
        if self._terminal is not None:
            self._stray_output.divert()
        if "TMUX" in os.environ:
            self.write(_DISTINCT_KEYS)

    def stop_application_mode(self) -> None:
        if "TMUX" in os.environ:
            self.write(_PLAIN_KEYS)
        super().stop_application_mode()
        self._stray_output.restore()

    def terminal_size(self) -> tuple[int, int]:
        """Return the terminal's size in columns and rows; (0, 0) if it is unknown.

        ``shutil.get_terminal_size`` would ask descriptor 1, which may lead to the log file.
        """
        if self._terminal is None or {"COLUMNS", "LINES"} & os.environ.keys():
            size = shutil.get_terminal_size((0, 0))
            return (size.columns, size.lines)
        with suppress(OSError):
            size = os.get_terminal_size(self._terminal)
            return (size.columns, size.lines)
        return (0, 0)

    def _get_terminal_size(self) -> tuple[int, int]:
        columns, rows = self.terminal_size()
        if columns and rows:
            return (columns, rows)
        return super()._get_terminal_size()

    def write(self, data: str) -> None:
        """Write to the terminal.

        If the early prompt has already switched to the alternate screen, the first switch is
        skipped, so that the early prompt stays visible until the first frame. The longest output
        before `painted` is called is kept as the first frame.
        """
        if self._has_screen and data == ALTERNATE_SCREEN:
            self._has_screen = False
            return
        if self._first_frame is not None and len(data) > len(self._first_frame):
            self._first_frame = data
        super().write(data)

    def painted(self, row: int, column: int, *, vi: bool) -> None:
        """Start reading keys now that the first frame is painted, and save its prompt line.

        The next start shows the saved line until its own first frame. The prompt's first letter is
        at ``row`` and ``column``, from 0. With ``vi``, an Escape typed before this call counts as
        the Escape key, not as Alt, even if a letter follows it.
        """
        if vi:
            self._typed = LONE_ESCAPE.sub(ESCAPE_KEY, self._typed)
        self._is_painted.set()
        if self._first_frame:
            early_prompt.keep(self._first_frame, row, column)
        self._first_frame = None

    # -- suspending and resuming

    def suspend_to_shell(self) -> bool:
        """Restore the terminal, then stop the process group. Returns True after it was resumed.

        Returns False if the system did not stop the group, because no shell could resume it.
        """
        return self._stop(lambda: os.killpg(os.getpgrp(), signal.SIGTSTP))

    def _stop(self, stop: Callable[[], None]) -> bool:
        self._continued = False
        self.suspend_application_mode()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        stop()
        signal.signal(signal.SIGTSTP, self._sigtstp_application)
        self.resume_application_mode()
        return self._continued

    def _sigtstp_application(self, *_: object) -> None:
        """Handle SIGTSTP: restore the terminal, then stop the process.

        If another program has borrowed the terminal, there is nothing to restore, so the process
        stops at once.
        """
        if self._auto_restart:
            # Don't stop the process in the signal handler itself, because the code that the handler
            # interrupted may hold a lock that other threads need in order to end.
            self._loop.call_soon_threadsafe(
                self._stop, lambda: os.kill(os.getpid(), signal.SIGTSTP)
            )
        else:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTSTP)
            signal.signal(signal.SIGTSTP, self._sigtstp_application)

    def _sigcont_application(self, *_: object) -> None:
        """Handle SIGCONT, which continues the stopped program.

        After a SIGSTOP, which gives no warning, sets the terminal up again, because another program
        may have changed it.
        """
        if self._auto_restart and signal.getsignal(signal.SIGTSTP) != signal.SIG_DFL:
            self._loop.call_soon_threadsafe(self._set_up_again)
        self._continued = True

    def _set_up_again(self) -> None:
        self.suspend_application_mode()
        self._must_signal_resume = True
        self.resume_application_mode()

    def run_input_thread(self) -> None:
        decode = getincrementaldecoder("utf-8")("replace").decode
        parser = InputParser(self._debug)
        # Before the first frame no widget has the focus, so keys would be lost. Therefore, wait.
        while not (self._is_painted.wait(_ESCAPE_TIMEOUT_SECONDS) or self.exit_event.is_set()):
            pass
        typed = decode(self._typed)
        self._typed = b""
        for message in parser.feed(typed) if typed else ():
            self.process_message(message)
        # Don't use the default selector: on macOS, it can't watch a terminal.
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                data = None
                if selector.select(_ESCAPE_TIMEOUT_SECONDS):
                    data = self._read()
                if data == b"":
                    self._lost()
                    break
                for message in parser.feed(decode(data)) if data else ():
                    self.process_message(message)
                for message in parser.tick():
                    self.process_message(message)
        with suppress(EOFError, ParseError):
            for _ in parser.feed(""):
                pass

    def _read(self) -> bytes | None:
        """Read the input that is available.

        Returns b"" if the terminal has disappeared, and None if there is no input.
        """
        try:
            return os.read(self.fileno, _READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            return b""


class _StrayOutput:
    """Redirects standard output and standard error to a log file while the screen is drawn.

    Libraries and add-ons may write to them directly, which would corrupt the screen.
    """

    def __init__(self) -> None:
        self._terminals: dict[int, int] = {}
        """Copies of the descriptors that lead to the terminal, by the redirected descriptor (1 or
        2)."""

    def divert(self) -> None:
        """Make the descriptors 1 and 2 lead to the log file, if they lead to a terminal now."""
        if self._terminals:
            return
        log = _open_log()
        for descriptor in (1, 2):
            if os.isatty(descriptor):
                self._terminals[descriptor] = os.dup(descriptor)
                os.dup2(log, descriptor)
        os.close(log)

    def restore(self) -> None:
        """Make the redirected descriptors lead to the terminal again.

        This is necessary for programs that borrow the terminal, and for messages printed at the
        end.
        """
        for descriptor, terminal in self._terminals.items():
            os.dup2(terminal, descriptor)
            os.close(terminal)
        self._terminals.clear()


def _open_log() -> int:
    """Open the log file for stray output and return its descriptor.

    If the file is large, empties it. If it can't be opened, opens the null device instead.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    with suppress(OSError):
        place = log_dir()
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        log = os.open(place / STRAY_OUTPUT, flags, 0o600)
        if os.fstat(log).st_size > _MAX_STRAY_BYTES:
            os.ftruncate(log, 0)
        return log
    return os.open(os.devnull, os.O_WRONLY)


class _Output:
    """A terminal's output stream.

    If the terminal disappears, calls ``lost`` once and drops all writes.
    """

    def __init__(self, stream: TextIO, lost: Callable[[], None]) -> None:
        self._stream = stream
        self._lost = lost
        self._gone = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._try(lambda: self._write(text))
        return len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def _write(self, text: str) -> None:
        # Another program may have left the terminal in non-blocking mode, in which half a frame
        # would be lost.
        if not os.get_blocking(descriptor := self._stream.fileno()):
            os.set_blocking(descriptor, True)
        self._stream.write(text)

    def _try(self, act: Callable[[], object]) -> None:
        if self._gone:
            return
        try:
            act()
        except (OSError, ValueError):
            self._gone = True
            self._lost()

"""Textual's driver, made to bear terminals that send bytes that are no text, stop us, and go away."""

import asyncio
import os
import selectors
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

from tui_agent.ui.early_prompt import ALTERNATE_SCREEN, ESCAPE_KEY, LONE_ESCAPE, early_prompt
from tui_agent.ui.terminal_input import InputParser

if TYPE_CHECKING:
    from io import TextIOWrapper

    from textual.app import App

_READ = 4096
_ESCAPE_TIMEOUT_SECONDS = 0.1
"""Seconds after which the parser looks whether an escape sequence stays unfinished."""
_OTHER_KEYS = "\x1b[>4;2m"
"""Has tmux, with ``extended-keys on``, tell Shift+Enter from Enter (xterm's modifyOtherKeys)."""
_PLAIN_KEYS = "\x1b[>4m"


class TerminalGone(Message):
    """Nobody reads the terminal's output, and no key will come any more."""


class TerminalDriver(LinuxDriver):
    """A driver that shows undecodable bytes as replacement characters and tells the app when the terminal is gone."""

    def __init__(
        self,
        app: "App[Any]",
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        # Textual draws on standard error, which may be closed or a file where standard output is
        # the terminal.
        drawn_on = None
        for stream in (sys.__stderr__, sys.__stdout__):
            if stream and stream.isatty():
                drawn_on = stream
                break
        if drawn_on is not None:
            self._file = cast("TextIOWrapper", _Output(drawn_on, self._lost))

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
        # Ctrl+S, typed while the terminal was another's, stops its output, and no key would start
        # it again.
        with suppress(termios.error):
            termios.tcflow(self.fileno, termios.TCOON)
        if "TMUX" in os.environ:
            self.write(_OTHER_KEYS)

    def stop_application_mode(self) -> None:
        if "TMUX" in os.environ:
            self.write(_PLAIN_KEYS)
        super().stop_application_mode()

    def write(self, data: str) -> None:
        """Write, but don't clear the early prompt before the first frame is there."""
        if self._has_screen and data == ALTERNATE_SCREEN:
            self._has_screen = False
            return
        if self._first_frame is not None and len(data) > len(self._first_frame):
            self._first_frame = data
        super().write(data)

    def painted(self, row: int, column: int, *, vi: bool) -> None:
        """Take keys from now on, and keep how the prompt looks for the next start.

        Its first letter goes to ``row`` and ``column``, counted from 0. With the keys of ``vi``, an
        Escape typed before was one, although the letter after it stands right behind.
        """
        if vi:
            self._typed = LONE_ESCAPE.sub(ESCAPE_KEY, self._typed)
        self._is_painted.set()
        if self._first_frame:
            early_prompt.keep(self._first_frame, row, column)
        self._first_frame = None

    # -- stopped by the user, and going on

    def suspend_to_shell(self) -> bool:
        """Give the terminal back and stop, with everything a shell started as the same job; returns when we go on.

        Returns whether we were stopped at all. The system stops no program that no shell could
        bring back.
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
        """Stop on request; at once where another program has the terminal."""
        if self._auto_restart:
            # Not here: the interrupted code may hold a lock of the threads that are to end.
            self._loop.call_soon_threadsafe(
                self._stop, lambda: os.kill(os.getpid(), signal.SIGTSTP)
            )
        else:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTSTP)
            signal.signal(signal.SIGTSTP, self._sigtstp_application)

    def _sigcont_application(self, *_: object) -> None:
        """Note that we go on; after a stop without warning the terminal is as another program left it."""
        if self._auto_restart and signal.getsignal(signal.SIGTSTP) != signal.SIG_DFL:
            self._loop.call_soon_threadsafe(self._begin_again)
        self._continued = True

    def _begin_again(self) -> None:
        self.suspend_application_mode()
        self._must_signal_resume = True
        self.resume_application_mode()

    def run_input_thread(self) -> None:
        decode = getincrementaldecoder("utf-8")("replace").decode
        parser = InputParser(self._debug)
        # Before the first frame nothing has the focus, and keys would be lost.
        while not (self._is_painted.wait(_ESCAPE_TIMEOUT_SECONDS) or self.exit_event.is_set()):
            pass
        typed = decode(self._typed)
        self._typed = b""
        for message in parser.feed(typed) if typed else ():
            self.process_message(message)
        # Not the default selector: on macOS that one can't watch a terminal.
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
        """Return the input, b"" when the terminal is gone, None when there was nothing after all."""
        try:
            return os.read(self.fileno, _READ)
        except BlockingIOError:
            return None
        except OSError:
            return b""


class _Output:
    """A stream to a terminal that may go away: writes are dropped then, and the first one is reported."""

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
        # Another program on the same terminal may have left it like that; half a frame would be
        # lost.
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

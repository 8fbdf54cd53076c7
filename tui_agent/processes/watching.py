"""Tells the watcher which commands run, so that they end with the program even when it is killed."""

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tui_agent.processes.marks import own

log = logging.getLogger(__name__)

MAX_NAMED_PROCESSES = 100
"""Processes of one command that are named: a line must go through the pipe in one piece. The mark tells of others."""

_ROOT = str(Path(__file__).parents[2])
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from tui_agent.processes.watcher import main; main()"


class Watch:
    """The program's line to its watcher, which is started with the first command and again if it is gone."""

    def __init__(self) -> None:
        self._line: int | None = None
        self._told: dict[str, str] = {}
        self._broken = False

    def starting(self, mark: str) -> None:
        """A command is about to start; told before, because the program may be killed right after."""
        self._tell(mark, f"+ {mark} 0\n")

    def started(self, mark: str, pid: int) -> None:
        """It runs: its session and everything with its mark are to end with the program."""
        self._tell(mark, f"+ {mark} {pid}\n")

    def left_over(self, mark: str, pid: int, left: Sequence[str]) -> None:
        """It ended; what it left behind is to end with the program: ``left`` has each process as ``pid:start``."""
        self._tell(mark, f"& {mark} {pid} {' '.join(left[:MAX_NAMED_PROCESSES])}\n")

    def ended(self, mark: str) -> None:
        """Nothing of it is to be ended any more."""
        if self._told.pop(mark, None) is not None and self._line is not None:
            self._write(f"- {mark}\n")

    def _tell(self, mark: str, text: str) -> None:
        self._told[mark] = text
        if self._broken or (self._line is not None and self._write(text)):
            return
        try:
            self._line = _start()
        except OSError as error:
            self._broken = True
            log.warning("commands are not ended when the program is killed: %s", error)
            return
        self._write("".join(self._told.values()))

    def _write(self, text: str) -> bool:
        assert self._line is not None  # noqa: S101 - callers look
        try:
            os.write(self._line, text.encode("ascii"))
        except BlockingIOError:  # it is stopped; whatever it was told before still counts
            return True
        except OSError:
            os.close(self._line)
            self._line = None
            return False
        return True


def _start() -> int:
    """Start a watcher and return the writing end of its input; no child of the program inherits that."""
    reader, writer = os.pipe()
    try:
        os.set_blocking(writer, False)
        os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", "-c", _PROGRAM, _ROOT],
            own({}),
            file_actions=[
                (os.POSIX_SPAWN_DUP2, reader, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
    except BaseException:
        os.close(writer)
        raise
    finally:
        os.close(reader)
    return writer


watch = Watch()
"""The one of this program."""

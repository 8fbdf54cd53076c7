"""Lets another program, such as the user's editor, use the terminal, and takes it back afterwards.

Suspending the program to the shell is in `tui_agent.ui.driver`.
"""

import asyncio
import errno
import os
import shlex
import signal
import tempfile
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from tui_agent.lazy import cached_property
from tui_agent.processes.environment import own
from tui_agent.processes.own_programs import find_program
from tui_agent.text_files.encodings import user_text

FROM_KEYS = frozenset({signal.SIGINT, signal.SIGQUIT})
"""Signals that keys (Ctrl+C and Ctrl+Backslash) send to all programs that run in a terminal in its
normal mode."""


class Lending:
    """Keeps track of the other program to which the terminal is lent, if any.

    Created only once, because a process has one terminal.
    """

    def __init__(self) -> None:
        self._lent = False
        self._borrower: Process | None = None
        self._waiting: Callable[[], object] | None = None

    @cached_property
    def directory(self) -> Path:
        """Directory for the edited files, created on first use and removed when the program ends.

        Creating it also removes the directories of earlier processes of this program that were
        killed.

        Raises:
            OSError: it can't be created.
        """
        from tui_agent.sandbox.layer import make_own_directory

        return make_own_directory(self, Path(tempfile.gettempdir()))

    async def lend(self, app: App[Any], command: Sequence[str]) -> int:
        """Run a program on the app's terminal and return its exit code.

        Raises:
            SuspendNotSupported: the app has no terminal that another program could use.
            OSError: the program can't be started.
        """
        with app.batch_update(), app.suspend():
            # Set this before the program starts, because it may receive keys before the call
            # returns.
            self._lent = True
            try:
                self._borrower = await asyncio.create_subprocess_exec(*command, env=own(os.environ))
                if self._waiting is not None:
                    self._end_borrower()
                return await self._borrower.wait()
            finally:
                self._lent = False
                self._borrower = None
                if self._waiting is not None:
                    app.call_later(self._waiting)

    def is_for_borrower(self, number: int) -> bool:
        """Return True if signal ``number`` comes from a key that was pressed in another program.

        The other program has borrowed the terminal, so the signal is not meant for this one.
        """
        return self._lent and number in FROM_KEYS

    def take_back(self, then: Callable[[], object]) -> None:
        """Terminate the program that has borrowed the terminal; call ``then`` when it has ended.

        If no program has borrowed the terminal, calls ``then`` at once.
        """
        if not self._lent:
            then()
            return
        self._waiting = then
        self._end_borrower()

    def _end_borrower(self) -> None:
        if self._borrower is not None:
            with suppress(ProcessLookupError):
                self._borrower.terminate()


class EditorError(Exception):
    """Raised when the editor can't be used. The message is a sentence for the user."""


async def edit_in_editor(app: App[Any], text: str, name: str) -> str | None:
    """Open a text in the user's editor ($VISUAL or $EDITOR) and return the edited text.

    The editor opens a file called ``name``. Returns None if the editor exits with an error.
    Newlines at the end are removed.

    Raises:
        EditorError: no editor can be started, or the file can't be written or read.
    """
    try:
        path = lending.directory / name
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EditorError(f"Cannot write a file for the editor: {error.strerror}.") from error
    try:
        code = await _open_in_editor(app, path)
        if code != 0:
            return None
        return user_text(path.read_bytes()).replace("\r\n", "\n").rstrip("\n")
    except OSError as error:
        raise EditorError(f"Cannot read the edited file: {error.strerror}.") from error
    finally:
        path.unlink(missing_ok=True)


async def _open_in_editor(app: App[Any], path: Path) -> int:
    """Open a file in $VISUAL, $EDITOR or vi; return the editor's exit code.

    Raises:
        EditorError: no editor can be started. An editor inside the project is not used.
    """
    from tui_agent.files.own_git import find_project

    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        command = shlex.split(named) or ["vi"]
    except ValueError as error:
        reason = f"Cannot read the editor's command ({named}): {error}."
        raise EditorError(reason) from error
    try:
        program = find_program(command[0], find_project(Path.cwd()))
        if program is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such program outside the project")
        return await lending.lend(app, [program, *command[1:], str(path)])
    except SuspendNotSupported as error:
        raise EditorError("No editor can be opened in this terminal.") from error
    except OSError as error:
        reason = f"Cannot start {command[0]}: {error.strerror}. Set $VISUAL to your editor."
        raise EditorError(reason) from error
    finally:
        app.refresh(layout=True)


lending = Lending()
"""The only instance of `Lending`, because the process has one terminal."""

"""Lends the terminal to another program, an editor say, and takes it back when that ends or this program has to."""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from textual.app import App

from tui_agent.processes.marks import own

FROM_KEYS = frozenset({signal.SIGINT, signal.SIGQUIT})
"""Signals that keys send to all programs of a terminal in its plain state."""


class Lending:
    """Who has the terminal. A process has one, and so one of these."""

    def __init__(self) -> None:
        self._lent = False
        self._borrower: Process | None = None
        self._waiting: Callable[[], object] | None = None

    async def lend(self, app: App[Any], command: Sequence[str]) -> int:
        """Run a program on the app's terminal and return its exit code.

        Raises:
            SuspendNotSupported: the app has no terminal to lend.
            OSError: the program can't be started.
        """
        with app.batch_update(), app.suspend():
            # From before it is started: it may be up, and keys meant for it may come, before this program hears of it.
            self._lent = True
            try:
                self._borrower = await asyncio.create_subprocess_exec(*command, env=own(os.environ))
                if self._waiting is not None:
                    self._end_borrower()
                return await self._borrower.wait()
            finally:
                self._lent, self._borrower = False, None
                if self._waiting is not None:
                    app.call_later(self._waiting)

    def concerns(self, number: int) -> bool:
        """Whether a signal to all programs of the terminal was meant for the one that has it."""
        return self._lent and number in FROM_KEYS

    def take_back(self, then: Callable[[], object]) -> None:
        """Ask whoever has the terminal to end, and do something once the app has it; at once if it has."""
        if not self._lent:
            then()
            return
        self._waiting = then
        self._end_borrower()

    def _end_borrower(self) -> None:
        if self._borrower is not None:
            with suppress(ProcessLookupError):
                self._borrower.terminate()


lending = Lending()
"""The one of this program."""

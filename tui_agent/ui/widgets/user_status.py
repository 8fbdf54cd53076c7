"""The user's own status line (``ui.status_line``): the first line of the output of a command.

The command gets the state of the session as JSON on standard input. The main screen says what that
state is and when it changed; user_commands.py runs the command.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from textual import work
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from tui_agent.app.format import one_line
from tui_agent.lazy import LazyPattern
from tui_agent.ui.later import Later

PAUSE = 0.3
"""Seconds from a change until the command runs, so that one run covers several changes."""
SECONDS = 5.0
"""Time limit of the command, in seconds."""
_STYLES = LazyPattern(r"\x1b\[[0-9;:]*m")
"""Color sequences, which are removed from the output; other control sequences are made visible."""


class UserStatusLine(Widget):
    """Runs the user's command after changes, never twice at once, and shows its output.

    Hidden without a command.
    """

    ALLOW_SELECT = False
    text: reactive[str] = reactive("")

    def __init__(
        self,
        state: Callable[[], Mapping[str, Any] | None],
        cwd: Callable[[], Path],
        warn: Callable[[str], None],
    ) -> None:
        """``state`` returns the command's input, None if the command should not run.

        ``warn`` gets a sentence when the command fails, once until it works again.
        """
        super().__init__()
        self._warn = warn
        self._state = state
        self._cwd = cwd
        self._command: str | None = None
        self._run_later = Later(self, self._run_if_changed)
        self._given: bytes | None = None
        self._is_running = False
        self._has_failed = False
        self.display = False

    def set_command(self, command: str | None) -> None:
        """Set the command, "" or None for none; another one is run soon."""
        if command != self._command:
            self._command = command or None
            self._has_failed = False
            self._given = None
            self.text = ""
            self.display = self._command is not None
            self.run_soon()

    def run_soon(self) -> None:
        """Have the command run after `PAUSE`, if its input is another one by then."""
        if self._command is not None and self.is_mounted:
            self._run_later.after(PAUSE)

    def render(self) -> Content:
        return Content(self.text)

    def _run_if_changed(self) -> None:
        state = self._state()
        if self._command is None or state is None:
            return
        given = json.dumps(state).encode()
        if self._is_running:
            self.run_soon()
        elif given != self._given:
            self._given = given
            self._is_running = True
            self._run(self._command, given)

    @work(group="status line")
    async def _run(self, command: str, given: bytes) -> None:
        from tui_agent.ui import user_commands

        out, problem = await user_commands.run(command, self._cwd(), given, seconds=SECONDS)
        first, *_ = _STYLES.sub("", out).splitlines() or [""]
        self._is_running = False
        self.text = one_line(first, 500)
        if problem and not self._has_failed:
            self._warn(f"status_line: {problem}")
        self._has_failed = bool(problem)

"""The user's own status line: the first line that the command in ``ui.status_line`` prints.

The command receives the state of the session as JSON on its standard input. The main screen
provides the state and reports changes. This widget decides when the command runs, and
user_commands.py runs it.
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
"""Seconds from a change until the command runs, so that one run can cover several changes."""
SECONDS = 5.0
"""Time limit of the command, in seconds."""
_STYLES = LazyPattern(r"\x1b\[[0-9;:]*m")
"""Matches color sequences in the output, which are removed.

Other escape sequences are made visible.
"""


class UserStatusLine(Widget):
    """Runs the user's command after changes, one run at a time, and shows its first output line.

    Hidden if there is no command.
    """

    ALLOW_SELECT = False
    text: reactive[str] = reactive("")

    def __init__(
        self,
        state: Callable[[], Mapping[str, Any] | None],
        cwd: Callable[[], Path],
        problem_of: Callable[[Path, str], str],
        warn: Callable[[str], None],
    ) -> None:
        """Create the status line.

        ``state`` returns the input of the command, or None if the command must not run now.

        ``problem_of`` takes a directory and the command. It returns the reason why the command must
        not run there, or "" if it may run. ``warn`` is called with a message for the user when the
        command fails. After that, it isn't called again until the command has succeeded once and
        then fails again.
        """
        super().__init__()
        self._warn = warn
        self._state = state
        self._cwd = cwd
        self._problem_of = problem_of
        self._command: str | None = None
        self._run_later = Later(self, self._run_if_changed)
        self._given: bytes | None = None
        self._is_running = False
        self._has_failed = False
        self.display = False

    def set_command(self, command: str | None) -> None:
        """Set the command, or remove it if it is "" or None.

        If the command has changed, run it soon.
        """
        if command != self._command:
            self._command = command or None
            self._has_failed = False
            self._given = None
            self.text = ""
            self.display = self._command is not None
            self.run_soon()

    def run_soon(self) -> None:
        """Run the command after `PAUSE` seconds, provided that its input has changed by then."""
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

        out, problem = await user_commands.run(
            command, self._cwd(), given, self._problem_of, seconds=SECONDS
        )
        first, *_ = _STYLES.sub("", out).splitlines() or [""]
        self._is_running = False
        if command != self._command:  # The user has changed the command.
            return
        self.text = one_line(first, 500)
        if problem and not self._has_failed:
            self._warn(f"status_line: {problem}")
        self._has_failed = bool(problem)

"""Gets the user's attention by title, progress bar, bell, desktop notification and user command.

The terminal's title and progress bar always show the agent's state. The other signals are used
while the user is away, if a question is waiting, a run of at least 10 s has ended, or an aside (a
session that works beside the one on the screen) needs the user. The user counts as away if the
terminal has reported that it lost the focus. In terminals that don't report their focus, the user
counts as away if no key was pressed for 10 s. An aside rings the bell even if the user is at the
terminal.
"""

from __future__ import annotations

import asyncio
import json
import logging
from enum import StrEnum
from typing import TYPE_CHECKING

from textual.message import Message

from tui_agent.app.format import one_line, seconds
from tui_agent.lazy import dataclass
from tui_agent.ui import terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.screen import Screen
    from textual.timer import Timer

    from tui_agent.agent.agent import Agent
    from tui_agent.agent.events import RunEnded
    from tui_agent.app.controller import Controller
    from tui_agent.app.side_by_side import Aside

log = logging.getLogger(__name__)

LONG_SECONDS = 10.0
"""Minimum duration of a run whose end is announced, in seconds. If the terminal does not report its
focus, this is also the time without keys after which the user counts as away."""
PROGRESS_SECONDS = 10.0
"""Seconds after which the terminal's progress bar is set again, because Ghostty removes the bar
after 15."""
COMMAND_SECONDS = 10.0
"""Time limit of the user's command ``ui.notify_command``, in seconds."""


class Sign(StrEnum):
    """The agent's state, which is shown as a prefix of the terminal's title.

    DONE and FAILED are shown until the user comes back.
    """

    IDLE = ""
    WORKING = "◐ "
    ASKING = "? "
    DONE = "✓ "
    FAILED = "✗ "

    @property
    def progress(self) -> terminal.Progress:
        match self:
            case Sign.WORKING:
                return terminal.Progress.WORKING
            case Sign.ASKING:
                return terminal.Progress.WAITING
            case Sign.FAILED:
                return terminal.Progress.FAILED
            case _:
                return terminal.Progress.NONE


@dataclass
class TerminalWrite(Message):
    """Message that asks the application to write an escape sequence to the terminal."""

    sequence: str


class Attention:
    """Shows the agent's state in the terminal's title, and notifies the user. Created only once."""

    def __init__(
        self, screen: Screen[None], controller: Controller, last_typed: Callable[[], float]
    ) -> None:
        """Create the notifier, which posts its messages to ``screen``.

        ``last_typed`` returns the time of the last key press, in seconds by the controller's clock.
        """
        self._screen = screen
        self._controller = controller
        self._last_typed = last_typed
        self._since = 0.0
        self._is_running = False
        self._is_focus_known = False
        self._repeat: Timer | None = None
        self._running: set[asyncio.Task[None]] = set()
        self.sign = Sign.IDLE

    def focus_changed(self, *, focused: bool) -> None:
        self._is_focus_known = True
        if focused:
            self.user_returned()

    def user_returned(self) -> None:
        """The user is back: remove the agent's sign from the title if it reports the end of a run.

        These signs are DONE and FAILED.
        """
        if self.sign in {Sign.DONE, Sign.FAILED}:
            self.show(Sign.IDLE)

    def opened(self, agent: Agent) -> None:
        """Show the state of the agent in the session that was just opened; it may be working."""
        self._is_running = agent.running
        began = self._controller.progress.began
        self._since = began if agent.running and began else self._controller.clock()
        if agent.questions.open is not None or agent.person.open_questions:
            self.show(Sign.ASKING)
        else:
            self.answered()

    def run_started(self) -> None:
        self._since = self._controller.clock()
        self._is_running = True
        self.show(Sign.WORKING)

    def asked(self, about: str) -> None:
        """Show that a question is waiting for the user; ``about`` describes the question."""
        self.show(Sign.ASKING)
        self._notify("asks", f"asks {about}")

    def answered(self) -> None:
        """Show that no question is waiting for the user any more."""
        self.show(Sign.WORKING if self._is_running else Sign.IDLE)

    def run_ended(self, ended: RunEnded) -> None:
        took = self._controller.clock() - self._since
        self._is_running = False
        if ended.reason == "interrupted" or (took < LONG_SECONDS and self._is_user_present):
            self.show(Sign.IDLE)
            return
        failed = ended.reason == "error"
        if self._is_user_present:
            self.show(Sign.IDLE)
        else:
            self.show(Sign.FAILED if failed else Sign.DONE)
        if took >= LONG_SECONDS:
            if failed:
                event = "failed"
            elif ended.has_answer:
                event = "done"
            else:
                event = "stopped"
            why = ""
            if ended.error:
                why = f": {one_line(ended.error, 100)}"
            self._notify(
                event, f"{'is done' if event == 'done' else event} after {seconds(took)}{why}", took
            )

    @property
    def _is_user_present(self) -> bool:
        if self._is_focus_known:
            return self._screen.app.app_focus
        return self._controller.clock() - self._last_typed() < LONG_SECONDS

    def show(self, sign: Sign) -> None:
        if sign is not self.sign:
            self.sign = sign
            self.show_title()
            self._show_progress()

    def show_title(self) -> None:
        """Set the terminal's title to the agent's sign, followed by the open session's title."""
        title = ""
        if self._controller.agent is not None:
            title = one_line(self._controller.agent.session.info.title, 60)
        self._screen.app.sub_title = f"{self.sign}{title}".strip()

    def _show_progress(self) -> None:
        """Set the terminal's progress bar to the agent's state, if the terminal has a progress bar.

        While the agent works, this is repeated at intervals.
        """
        if not terminal.shows_progress():
            return
        state = self.sign.progress
        self._screen.post_message(TerminalWrite(terminal.progress(state)))
        if self._repeat is None and state is terminal.Progress.WORKING:
            self._repeat = self._screen.set_interval(PROGRESS_SECONDS, self._show_progress)
        elif self._repeat is not None and state is not terminal.Progress.WORKING:
            self._repeat.stop()
            self._repeat = None

    def notify_about_aside(self, aside: Aside, sentence: str) -> None:
        """Notify the user that ``aside``, a session beside the open one, needs them or is done.

        ``sentence`` says what happened. If the user is at the terminal, only rings the bell, or
        does nothing if ``ui.notify`` is off.
        """
        from tui_agent.app.side_by_side import CALLS

        settings = self._controller.services.config().ui
        if self._is_user_present and settings.notify != "off":
            self._screen.post_message(TerminalWrite("\a"))
        self._notify(CALLS[aside.state], sentence, agent=aside.agent)

    def _notify(
        self, event: str, text: str, took: float = 0.0, *, agent: Agent | None = None
    ) -> None:
        """Notify the user as the settings say, unless the user is at the terminal.

        The settings choose between bell, desktop notification and command. ``event`` is "asks",
        "done", "failed" or "stopped"; ``text`` describes it; ``took`` is the duration of the run in
        seconds. ``agent`` is the agent concerned; None means the agent on the screen.
        """
        agent = agent or self._controller.agent
        settings = self._controller.services.config().ui
        if self._is_user_present or agent is None:
            return
        info = agent.session.info
        title = info.title or info.first_message
        if settings.notify != "off":
            body = f"{one_line(title, 50)} {text}".strip()
            sequence = None
            if settings.notify == "desktop":
                sequence = terminal.notification("tui-agent", body)
            self._screen.post_message(TerminalWrite(f"\a{sequence or ''}"))
        if settings.notify_command:
            facts = {
                "event": event,
                "text": text,
                "session": info.id,
                "title": title,
                "directory": info.cwd,
            }
            given = json.dumps({**facts, "seconds": round(took, 1)}).encode()
            task = asyncio.get_running_loop().create_task(self._run(settings.notify_command, given))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _run(self, command: str, given: bytes) -> None:
        from tui_agent.ui import user_commands

        cwd = self._controller.cwd
        _out, problem = await user_commands.run(
            command,
            cwd,
            given,
            self._controller.services.problem_of_command,
            seconds=COMMAND_SECONDS,
        )
        if problem:
            self._controller.frontend.warn(f"notify_command: {problem}")

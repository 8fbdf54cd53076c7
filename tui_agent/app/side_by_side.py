"""Watches the sessions (asides) that continue working while another session is on the screen.

The controller creates an `Aside` when a busy session leaves the screen, and owns the list of them.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import TYPE_CHECKING

from tui_agent.agent.events import (
    AgentEvent,
    EntryAppended,
    JobsChanged,
    PermissionAsked,
    PermissionSettled,
    QuestionAsked,
    QuestionsAnswered,
    RaceEnded,
    RunEnded,
    RunStarted,
)
from tui_agent.app.format import dotted, one_line, plural
from tui_agent.app.run_progress import next_state
from tui_agent.app.run_state import RunState
from tui_agent.session.entries import AssistantEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tui_agent.agent.agent import Agent
    from tui_agent.agent.events import PermissionRequest
    from tui_agent.agent.race.race import Race

MAX_TITLE = 40
"""Maximum length of a session's title in a sentence, in characters."""
MAX_LINE = 200
"""Maximum length, in characters, of the quoted line of a session's newest answer or question."""

RACE_OVER = "its race is over"


class AsideState(StrEnum):
    """What a session in the background is doing, or how it ended."""

    WORKING = "working"
    NEEDS_YOU = "needs you"
    DONE = "done"
    STOPPED = "stopped"
    """The run ended without an answer: by an error, limit, interruption or open question."""


CALLS = {
    AsideState.NEEDS_YOU: "asks",
    AsideState.DONE: "done",
    AsideState.STOPPED: "stopped",
}
"""Word that is passed to the user's notification command for each state."""


class Aside:
    """A session that continues while another one is on the screen, with its agent and race.

    ``report`` is called whenever its state changes.
    """

    def __init__(
        self,
        agent: Agent,
        race: Race | None,
        progress: RunState,
        clock: Callable[[], float],
        report: Callable[[Aside], None],
    ) -> None:
        self.agent = agent
        self.race = race
        self.progress = progress
        """The agent's current activity, to show when the session is brought back to the screen."""
        self.last_line = ""
        """First line of the newest answer; "" if there is none yet."""
        self.question = ""
        """What the user has to answer or look at in the session, as a phrase; "" if nothing."""
        if (waiting := agent.questions.open) is not None:
            self.question = _about(waiting)
        self.shown = asyncio.Event()
        """Set when the session is brought back to the screen or closed, as tasks wait for that."""
        self._clock = clock
        self._report = report
        self._ended: RunEnded | None = None
        self._reported = self.state
        self._leave = agent.channel.subscribe(self._on_event)

    @property
    def title(self) -> str:
        info = self.agent.session.info
        return one_line(info.title or info.first_message, MAX_TITLE) or "(empty)"

    @property
    def is_busy(self) -> bool:
        """Whether closing the session now would stop work, so that it has to stay open."""
        return is_busy(self.agent, self.race)

    @property
    def state(self) -> AsideState:
        if self.question:
            return AsideState.NEEDS_YOU
        if self.is_busy or self._ended is None:
            return AsideState.WORKING
        if self._ended.has_answer:
            return AsideState.DONE
        return AsideState.STOPPED

    def leave(self) -> None:
        """Stop watching the session, which is about to be brought back to the screen or closed."""
        self._leave()
        self.shown.set()

    def _on_event(self, event: AgentEvent) -> None:
        self.progress = next_state(self.progress, event, self._clock())
        match event:
            case RunStarted():
                self._ended = None
            case RunEnded():
                self._ended = event
            case PermissionAsked(request=request):
                self.question = _about(request)
            case QuestionAsked(text=text):
                self.question = one_line(text, MAX_LINE)
            case PermissionSettled() | QuestionsAnswered():
                self.question = ""
            case EntryAppended(entry=AssistantEntry() as entry):
                self.last_line = _first_line(entry) or self.last_line
            case JobsChanged():
                pass
            case RaceEnded():
                self.question = RACE_OVER
            case _:
                return
        self._report_change()

    def _report_change(self) -> None:
        if self._reported is not self.state:
            self._reported = self.state
            self._report(self)


def is_busy(agent: Agent, race: Race | None) -> bool:
    """Return True if an agent has work in progress, or if there is a race.

    Work in progress is a run, a running job or a ``/loop``.
    """
    works = agent.running or agent.jobs.running > 0 or bool(agent.repeated_message.message)
    return works or race is not None


def count_words(asides: Iterable[Aside]) -> str:
    """Return how many background sessions are in each state: ``1 session at work · 1 needs you``.

    Returns "" if there are none.
    """
    states = [aside.state for aside in asides]
    working = states.count(AsideState.WORKING)
    asking = states.count(AsideState.NEEDS_YOU)
    ended = len(states) - working - asking
    words: list[str] = []
    if working:
        words.append(f"{plural(working, 'session')} at work")
    if asking == 1:
        words.append("1 needs you")
    elif asking:
        words.append(f"{asking} need you")
    if ended:
        words.append(f"{ended} ended")
    return dotted(*words)


def news_of(aside: Aside) -> str:
    """Return a sentence about a background session: its state, and its question or answer.

    Of the answer, only the first line is quoted.
    """
    match aside.state:
        case AsideState.NEEDS_YOU:
            return f"“{aside.title}” needs you: {one_line(aside.question, 80)}"
        case AsideState.DONE:
            said = "."
            if aside.last_line:
                said = f": {one_line(aside.last_line, 80)}"
            return f"“{aside.title}” is done{said}"
        case AsideState.STOPPED:
            return f"“{aside.title}” stopped."
        case AsideState.WORKING:
            return f"“{aside.title}” continues."


def _about(request: PermissionRequest) -> str:
    return one_line(f"{request.tool} {request.title}", MAX_LINE)


def _first_line(entry: AssistantEntry) -> str:
    return one_line(entry.text.strip().partition("\n")[0], MAX_LINE)
